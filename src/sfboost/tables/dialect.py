"""Which kind of table a file is, and how a CSV file is written, read off its first bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["csv", "parquet", "arrow"]

#: Endings of file names.
ENDINGS: dict[str, Kind] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc", ".arrows"), "arrow"),
}
_DELIMITERS = ",;\t|"
_ARROW_FILE, _ARROW_STREAM, _PARQUET = b"ARROW1", b"\xff\xff\xff\xff", b"PAR1"


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"


def kind_of_bytes(head: bytes) -> Kind:
    """The kind of table by its first bytes; what is neither Parquet nor Arrow is taken for CSV.

    Examples
    --------
    >>> kind_of_bytes(b"PAR1..."), kind_of_bytes(b"age,sick")
    ('parquet', 'csv')
    """
    if head.startswith(_PARQUET):
        return "parquet"
    return "arrow" if head.startswith((_ARROW_FILE, _ARROW_STREAM)) else "csv"


def is_arrow_stream(head: bytes) -> bool:
    """Whether Arrow bytes are a stream, which a pipe can read, and not a file, which needs seeking."""
    return head.startswith(_ARROW_STREAM)


def kind_of_name(path: Path) -> Kind:
    """The kind of table that a file name asks for."""
    try:
        return ENDINGS[path.suffix.lower()]
    except KeyError:
        raise ValueError(
            f"{path.name} ends in none of {', '.join(ENDINGS)}: give the file one of these endings."
        ) from None


def sniff(
    head: bytes, delimiter: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> Dialect:
    r"""The dialect of a CSV file from its first bytes; what is given is not guessed.

    Examples
    --------
    >>> sniff(b"age;height\n40;1,82\n50;1,75\n")
    Dialect(delimiter=';', decimal=',', encoding='utf-8')
    """
    encoding = _encoding(head) if encoding is None else _check_encoding(encoding)
    text = head.decode(encoding, errors="ignore").lstrip("\ufeff")
    lines = [line for line in text.splitlines() if line.strip()][:200]
    header = re.sub(r'"[^"]*"', "", lines[0]) if lines else ""
    if delimiter is not None:
        delimiter = _check_delimiter(delimiter)
    else:
        delimiter = max(_DELIMITERS, key=lambda mark: (header.count(mark), mark == ","))
    if decimal not in (None, ".", ","):
        raise ValueError(f"Got --decimal {decimal!r}: it is . or ,")
    if decimal is None:
        cells = [cell.strip().strip('"') for line in lines[1:] for cell in line.split(delimiter)]
        commas = sum(bool(re.fullmatch(r"[+-]?\d+,\d+", cell)) for cell in cells)
        points = sum(bool(re.fullmatch(r"[+-]?\d+\.\d+", cell)) for cell in cells)
        decimal = "," if delimiter != "," and commas > points else "."
    return Dialect(delimiter, decimal, encoding)


def _check_delimiter(delimiter: str) -> str:
    delimiter = "\t" if delimiter == r"\t" else delimiter
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise ValueError(f"Got --delimiter {delimiter!r}: it is one ASCII character, such as ; or |")
    return delimiter


def _check_encoding(encoding: str) -> str:
    try:
        b"a".decode(encoding)
    except UnicodeDecodeError:
        pass  # "a" alone is no UTF-16
    except (LookupError, ValueError):
        raise ValueError(
            f"Got --encoding {encoding!r}: it is one that Python knows, such as utf-8, cp1252 or latin-1."
        ) from None
    return encoding


def _encoding(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        # The last character may be cut in two.
        head[:-4].decode("utf-8") if len(head) > 4 else head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 8:
            return "cp1252"  # what spreadsheets write where they do not write UTF-8
    return "utf-8"
