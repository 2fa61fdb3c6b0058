r"""Text from elsewhere, made harmless: what cannot be seen is written out.

Names of columns, classes, domains, categories and files are anybody's. Raw, an escape sequence in one
repaints the terminal, a line break forges a line of ours, and an override of direction swaps what is read.
"""

from __future__ import annotations

import unicodedata

# Controls, formatting (among it the overrides of direction), lone surrogates, separators of lines.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # Persian, Indic scripts and emoji are spelled with them


def plain(text: str, keep: str = "") -> str:
    r"""One line of text that shows all that is in it; characters of `keep` stay as they are.

    Examples
    --------
    >>> print(plain("age\x1b[2J\nnote: done"), plain("größe"))
    age\x1b[2J\nnote: done größe
    """
    if text.isprintable():
        return text
    return "".join(
        _written_out(letter) if is_unseen(letter) and letter not in keep else letter for letter in text
    )


def is_unseen(letter: str) -> bool:
    """Whether a character does something instead of showing."""
    return unicodedata.category(letter) in _UNSEEN and letter not in _JOINERS


def _written_out(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
