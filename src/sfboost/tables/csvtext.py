"""The bytes of a CSV file as UTF-8, with what Arrow would pass over in silence refused on the way.

Arrow takes an unclosed quote for one very long cell, and all lines after it are gone without a word.
"""

from __future__ import annotations

import codecs
import io
import re
import threading
from typing import Any

# Bytes that are looked at in one go.
_CHUNK = 1 << 20
# A cell between quotes that is longer was never meant to be one.
_LONGEST_CELL = 1 << 20


class CsvText(io.RawIOBase):
    r"""A stream of CSV text, decoded, without byte-order mark, whose quotes are all closed.

    Parameters
    ----------
    source : binary stream
    name : str
        For sentences.
    encoding, delimiter : str

    Examples
    --------
    >>> CsvText(io.BytesIO("größe\n1\n".encode("cp1252")), "a.csv", "cp1252", ",").read().decode()
    'größe\n1\n'
    >>> CsvText(io.BytesIO(b'name\n"Ann\nBob\n'), "a.csv", "utf-8", ",").read()
    Traceback (most recent call last):
    ...
    ValueError: Line 2 of a.csv opens a quote (") that is never closed: close it, or remove it.
    """

    def __init__(self, source: Any, name: str, encoding: str, delimiter: str) -> None:
        self._source, self._name, self._encoding = source, name, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._quotes = _Quotes(name, delimiter)
        self._ready = b""
        self._begun = self._done = False
        self._lock = threading.Lock()  # Arrow reads ahead in a thread of its own

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what comes next."""
        while not self._ready and not self._done:
            self._ready = self._next()
        part = self._ready[: len(buffer)]
        self._ready = self._ready[len(part) :]
        buffer[: len(part)] = part
        return len(part)

    def look_ahead(self) -> None:
        """Find the quote that a parser stumbled over, if it did: Arrow speaks of columns only."""
        read, limit = 0, 2 * (_LONGEST_CELL + _CHUNK)
        while not self._done and read < limit:
            read += len(self._next())

    def _next(self) -> bytes:
        with self._lock:
            return self._decoded()

    def _decoded(self) -> bytes:
        raw = self._source.read(_CHUNK)
        self._done = not raw
        try:
            text = self._decoder.decode(raw, final=self._done)
        except UnicodeError as error:
            before = getattr(error, "object", b"")[: getattr(error, "start", 0)]
            line = self._quotes.lines + before.decode(self._encoding, errors="ignore").count("\n") + 1
            raise ValueError(
                f"Line {line} of {self._name} is not {self._encoding}: name the encoding of the file with "
                "--encoding, such as utf-8, cp1252 or latin-1."
            ) from None
        if not self._begun and text:
            self._begun, text = True, text.removeprefix("\ufeff")
        if "\0" in text:
            raise ValueError(
                f"Line {self._quotes.lines + text[: text.index(chr(0))].count(chr(10)) + 1} of {self._name} "
                "holds a NUL character: this is no text, or of another encoding (--encoding names it)."
            )
        ready = text.encode()
        self._quotes.check(ready, last=self._done)
        return ready


class _Quotes:
    """Whether every quote that begins a cell is closed at its end."""

    def __init__(self, name: str, delimiter: str) -> None:
        self._ends = (delimiter.encode(), b"\r", b"\n")
        among = re.escape(delimiter.encode()) + rb"\r\n]"
        end, other = b"[" + among, b"[^" + among
        quoted = rb'"(?:[^"]++|"")*+" *+'
        # Anything but quotes; quotes that begin no cell; cells between quotes.
        self._right = re.compile(rb'(?:[^"]++|(?<=' + other + rb')"|' + quoted + b"(?=" + end + b"))*+")
        self._goes_on = re.compile(quoted + other)
        self._name = name
        # From the beginning of a cell on, so that its quotes are judged rightly; and the lines before it.
        self._rest, self._lines_before = b"", 0

    @property
    def lines(self) -> int:
        """Lines that ended so far."""
        return self._lines_before + self._rest.count(b"\n")

    def check(self, text: bytes, *, last: bool) -> None:
        """Look at what comes next; raise `ValueError` where a quote is not closed."""
        text = self._rest + (text + b"\n" if last else text)
        right = self._right.match(text).end()  # type: ignore[union-attr]  # it matches nothing at least
        start = max(text.rfind(end) for end in self._ends) + 1 if right == len(text) else right
        self._lines_before += text.count(b"\n", 0, start)
        self._rest = text[start:]
        line = self._lines_before + 1
        if self._goes_on.match(text, right):
            raise ValueError(
                f"A quoted cell in line {line} of {self._name} goes on after its closing quote: is a quote "
                'before it not closed? (A quote within a cell is written twice, "".)'
            )
        if right < len(text) and (last or len(self._rest) > _LONGEST_CELL):
            raise ValueError(
                f'Line {line} of {self._name} opens a quote (") that is never closed: close it, or remove it.'
            )
