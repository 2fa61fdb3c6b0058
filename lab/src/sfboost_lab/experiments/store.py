"""The results folder is the truth: lines that are appended, and read back with their checksums.

``records/`` holds one segment per worker process. A worker opens a new segment and never writes to another's,
so a line torn by a kill is always the last of its file.
"""

from __future__ import annotations

import gzip
import os
import socket
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sfboost.whole_files import write_whole
from sfboost_lab.experiments.record import Record


class FolderInUseError(RuntimeError):
    """Another sweep writes to this folder."""


@dataclass(frozen=True)
class Contents:
    """What a folder holds.

    Attributes
    ----------
    records : dict of str to Record
        By id; one that went well before one that failed, else the first.
    torn : int
        Unfinished last lines: the mark of a kill. Their runs are done again.
    damaged : tuple of str
        Lines that were changed after they were written, as "file:line". Their runs are done again.
    """

    records: dict[str, Record]
    torn: int = 0
    damaged: tuple[str, ...] = ()


class Store:
    """Records in a folder.

    Parameters
    ----------
    folder : path
        Made when the first record comes.

    Examples
    --------
    >>> import tempfile
    >>> from sfboost_lab.experiments import Measured, Run
    >>> run = Run("ac", "erm", seed=0, protocol="doc")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Store(folder).append([Record(run, Measured({"test": {"accuracy": 0.1}}), 1.0)])
    ...     [record.value("test") for record in Store(folder).read().records.values()]
    [0.1]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._segment: tuple[int, int] | None = None

    @property
    def segments(self) -> list[Path]:
        """The files, the one that was last written to at the end."""
        files = (self.folder / "records").glob("*.jsonl")
        return sorted(files, key=lambda path: (path.stat().st_mtime_ns, path.name))

    def append(self, records: Iterable[Record]) -> None:
        """Write records to this process's own segment, and wait until they are on the disk."""
        data = "".join(record.to_line() for record in records).encode()
        if not data:
            return
        segment = self._own_segment()
        written = 0
        while written < len(data):
            written += os.write(segment, data[written:])
        os.fsync(segment)

    def _own_segment(self) -> int:
        """The open file of this process: a forked child has another, and one that was deleted is replaced."""
        if self._segment is not None and self._segment[0] == os.getpid():
            if os.fstat(self._segment[1]).st_nlink:
                return self._segment[1]
            self.close()
        name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
        path = self.folder / "records" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o644)
        self._segment = (os.getpid(), opened)
        return opened

    def close(self) -> None:
        """Let go of the segment; the next record begins another."""
        if self._segment is not None and self._segment[0] == os.getpid():
            os.close(self._segment[1])
        self._segment = None

    def read(self) -> Contents:
        """Everything that was written whole."""
        return read_records(self.segments)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep a second sweep out of this folder; the lock ends with the process, however it ends."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("a+") as file:
            try:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except ImportError:  # Windows: two sweeps at once waste work, but read back as one
                pass
            except OSError as error:
                raise FolderInUseError(
                    f"Another sweep writes to {self.folder}. Wait for it, stop it, or give another folder."
                ) from error
            yield


def read_records(files: Iterable[Path]) -> Contents:
    """Read segments, or the one file of `write_records`, whose name may end in .gz.

    Of a run that was done again the record that is good counts, or else the last one.

    Examples
    --------
    >>> read_records([]).records
    {}
    """
    found: dict[str, Record] = {}
    torn, damaged = 0, []
    for path in files:
        with (
            gzip.open(path, "rt")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8", errors="replace") as file
        ):
            for number, line in enumerate(file, 1):
                if not line.endswith("\n"):
                    torn += 1
                    continue
                record = Record.from_line(line)
                if record is None:
                    damaged.append(f"{path.name}:{number}")
                elif record.run.id not in found or not found[record.run.id].ok:
                    found[record.run.id] = record
    return Contents(found, torn, tuple(damaged))


def write_records(records: Iterable[Record], path: Path) -> Path:
    """Write records as one file, ordered by id; the same records give the same bytes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_records([], Path(folder) / "none.jsonl.gz").name
    'none.jsonl.gz'
    """
    data = "".join(record.to_line() for record in sorted(records, key=lambda r: r.run.id)).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)
    return path


class Tail:
    """Counts the lines that come in, whoever writes them: progress that no engine has to report.

    Examples
    --------
    >>> Tail(Store("nowhere")).new_lines()
    0
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._offsets = {path: path.stat().st_size for path in store.segments}

    def new_lines(self) -> int:
        """Lines written since the last call."""
        lines = 0
        for path in self._store.segments:
            with path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                data = file.read()
            lines += data.count(b"\n")
            self._offsets[path] = self._offsets.get(path, 0) + len(data)
        return lines
