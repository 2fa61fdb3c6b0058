"""A table that is there to be read: a file or a pipe, and what its first bytes say."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sfboost.tables.dialect import Dialect, Kind, kind_of_bytes, sniff

PIPE = "-"
_HEAD = 1 << 20
_GZIP = b"\x1f\x8b"
# Lines that are looked at for codes.
_LINES = 1000
_PADDED = re.compile(r"\s*0\d+\s*")


@dataclass(frozen=True)
class Source:
    """A table that is there to be read.

    Attributes
    ----------
    name : str
        For sentences: the file's name, or "standard input".
    path : Path or None
        None is standard input.
    pipe : stream or None
        Standard input from its beginning.
    """

    name: str
    path: Path | None
    kind: Kind
    head: bytes
    dialect: Dialect
    pipe: Any = None

    @cached_property
    def header(self) -> list[str]:
        """Names of the columns of a CSV file; of another kind, none."""
        return next(iter(self._lines), [])

    @property
    def is_header_alone(self) -> bool:
        """Whether a CSV file has a header and no rows."""
        return self.kind == "csv" and len(self._lines) == 1

    @property
    def zero_padded(self) -> tuple[str, ...]:
        """CSV columns that begin with whole numbers written like 007, as codes are and amounts are not."""
        padded = {i for line in self._lines[1:] for i, cell in enumerate(line) if _PADDED.fullmatch(cell)}
        return tuple(name for i, name in enumerate(self.header) if i in padded)

    @cached_property
    def _lines(self) -> list[list[str]]:
        """The first lines of a CSV file; of one whose quotes are not closed, those before it."""
        text = self.head.decode(self.dialect.encoding, errors="ignore").removeprefix("\ufeff")
        lines: list[list[str]] = []
        with suppress(csv.Error):
            for line in csv.reader(io.StringIO(text), delimiter=self.dialect.delimiter):
                lines += [line] if line and self.kind == "csv" else []
                if len(lines) > _LINES:
                    break
        return lines

    @property
    def size(self) -> int | None:
        """Bytes, where they are known before reading."""
        return None if self.path is None else self.path.stat().st_size


def require_table(where: str) -> None:
    """Refuse a name that nothing has."""
    if where != PIPE and not Path(where).exists():
        raise ValueError(f"There is no file {where}: check the name, or pass - for standard input.")


def find(
    where: str, *, delimiter: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> Source:
    """Look at the beginning of a file, or of standard input for `-`."""
    path = None if where == PIPE else Path(where)
    if path is not None and path.is_dir():
        raise ValueError(f"{where} is a folder: name one file in it.")
    require_table(where)
    name = "standard input" if path is None else path.name
    pipe = None
    if path is not None and path.is_file():
        with path.open("rb") as file:
            head = file.read(_HEAD)
    else:  # what flows by can be read once
        flow: Any = sys.stdin.buffer if path is None else path.open("rb")
        head = flow.read(_HEAD)
        pipe, path = io.BufferedReader(_Rewound(head, flow), _HEAD), None
    if head.startswith(_GZIP):
        packed: Any = pipe or path.open("rb")  # type: ignore[union-attr]
        flow = _Unpacked(packed, name)
        head = flow.read(_HEAD)
        pipe, path = io.BufferedReader(_Rewound(head, flow), _HEAD), None
    if not head.strip():
        raise ValueError(f"{name} is empty: a table with a header and rows is needed.")
    kind = kind_of_bytes(head)
    dialect = sniff(head, delimiter, decimal, encoding)
    if kind == "csv" and b"\x00" in head and "\0" in head.decode(dialect.encoding, errors="ignore"):
        raise ValueError(f"{name} is no table we can read: CSV, Parquet and Arrow are.")
    return Source(name, path, kind, head, dialect, pipe)


class _Unpacked:
    """What a gzip stream holds."""

    def __init__(self, packed: Any, name: str) -> None:
        self._packed, self._name = packed, name
        self._stream = gzip.GzipFile(fileobj=packed)

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; none at the end."""
        try:
            return self._stream.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{self._name} is cut short or damaged ({error}): compress or copy it again."
            ) from error

    def close(self) -> None:
        self._stream.close()
        self._packed.close()


class _Rewound(io.RawIOBase):
    """A stream whose first bytes were read to look at them, and are given again."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head, self._rest = head, rest
        self._is_mine = rest is not sys.stdin.buffer

    def close(self) -> None:
        if self._is_mine:
            self._rest.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(chunk) :]
        buffer[: len(chunk)] = chunk
        return len(chunk)
