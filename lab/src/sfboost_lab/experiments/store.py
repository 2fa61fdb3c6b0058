"""What a run leaves behind: a record, one line with a checksum, and the folder that holds them all.

The results folder is the truth. ``records/`` holds one segment per worker process. A worker opens a new
segment and never writes to another's, so a line torn by a kill is always the last of its file.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import platform
import socket
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.whole_files import whole_file, write_whole
from sfboost_lab.experiments.run import Run, digest

_PACKAGES = ("sfboost", "numpy", "scipy", "scikit-learn", "torch")
_HEAD, _MIDDLE, _TAIL = '{"record":', ',"check":"', '"}'
_CHECK_LENGTH = 16


@dataclass(frozen=True)
class Measured:
    """What measuring one run returns.

    Parameters
    ----------
    metrics : mapping of place to mapping of metric to value
        A place is a domain ("test-0.1"), or one made from labelled rows for choosing ("stress/0.3").
    calibration : mapping
        What the stable logits were divided by.
    diagnostics, timings : mapping
        Anything worth knowing; seconds by stage.
    precision : str
        Of the arithmetic.
    test_access : {"none", "unlabelled", "labelled"}
        What was seen of the test domain. "labelled" is an ORACLE.
    trained_on : tuple of str
        The training domains.

    Examples
    --------
    >>> Measured({"test-0.1": {"accuracy": 0.75}}).precision
    'float64'
    """

    metrics: Mapping[str, Mapping[str, float]]
    calibration: Mapping[str, Any] = field(default_factory=dict)
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    precision: str = "float64"
    test_access: str = "none"
    trained_on: tuple[str, ...] = ()

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Measured:
        """What was written, as it was."""
        return cls(**{**plain, "trained_on": tuple(plain["trained_on"])})


@dataclass(frozen=True)
class Record:
    """A run and what it gave, or why it failed. Written once, never changed.

    `made` names the commit of the code and the date (`origin`). Records older than that name the commit that
    first held them as "packed".

    Examples
    --------
    >>> run = Run("ac", "erm", seed=0, protocol="doc")
    >>> record = Record(run, Measured({"test": {"accuracy": 0.1}}), seconds=1.0)
    >>> Record.from_line(record.to_line()) == record
    True
    """

    run: Run
    measured: Measured | None
    seconds: float
    versions: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    made: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the run gave numbers."""
        return self.error is None

    def value(self, place: str, metric: str = "accuracy") -> float:
        """One number; NaN where the run failed or did not measure it."""
        if self.measured is None:
            return math.nan
        found = self.measured.metrics.get(place, {}).get(metric)
        return math.nan if found is None else float(found)

    def to_line(self) -> str:
        """One line of JSON that ends in a checksum of what stands before it."""
        body = json.dumps(self._plain(), separators=(",", ":"), allow_nan=False)
        return f"{_HEAD}{body}{_MIDDLE}{_check(body)}{_TAIL}\n"

    @classmethod
    def from_line(cls, line: str) -> Record | None:
        """The record of a line; None if the line is torn or was changed."""
        body = line.rstrip("\n")[len(_HEAD) : -(len(_MIDDLE) + _CHECK_LENGTH + len(_TAIL))]
        if line.rstrip("\n") != f"{_HEAD}{body}{_MIDDLE}{_check(body)}{_TAIL}":
            return None
        plain = json.loads(body)
        measured = plain["measured"]
        return cls(
            Run.from_identity(plain["run"]),
            None if measured is None else Measured.from_plain(measured),
            plain["seconds"],
            plain["versions"],
            plain["error"],
            plain.get("made", {}),
        )

    def _plain(self) -> dict[str, Any]:
        measured = None if self.measured is None else {k: _tidy(v) for k, v in vars(self.measured).items()}
        return {
            "id": self.run.id,
            "status": "ok" if self.ok else "failed",
            "run": self.run.identity(),
            "measured": measured,
            "seconds": round(self.seconds, 4),
            "versions": dict(self.versions),
            "error": self.error,
            "made": dict(self.made),
        }


def _check(body: str) -> str:
    return hashlib.blake2b(body.encode(), digest_size=_CHECK_LENGTH // 2).hexdigest()


def _tidy(value: Any) -> Any:
    """Numbers with six significant digits, NaN as null: what is not known is not written."""
    if isinstance(value, Mapping):
        return {str(name): _tidy(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tidy(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


@cache
def versions() -> dict[str, str]:
    """Return the versions that a record names.

    Examples
    --------
    >>> "numpy" in versions()
    True
    """
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


#: Records by the id of their run.
Records = Mapping[str, Record]


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


Arrays = dict[str, npt.NDArray[Any]]


class Cache:
    """Named arrays in a folder, each set written whole or not at all.

    Two processes that miss the same set at the same time both make it; what they make is the same.

    Parameters
    ----------
    folder : path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = Cache(folder).get({"steps": 400}, lambda: {"weight": np.ones(2)})
    ...     again = Cache(folder).get({"steps": 400}, lambda: 1 / 0)
    >>> again["weight"].tolist()
    [1.0, 1.0]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def get(self, key: Any, make: Callable[[], Mapping[str, npt.NDArray[Any]]]) -> Arrays:
        """Return the arrays of this key, made now if they are not there or cannot be read."""
        path = self.folder / f"{digest(key)}.npz"
        found = _read(path)
        if found is not None:
            return found
        made = {name: np.asarray(value) for name, value in make().items()}
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as part:
            np.savez(part, allow_pickle=False, **made)
        return made


def _read(path: Path) -> Arrays | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (FileNotFoundError, zipfile.BadZipFile, EOFError, ValueError):  # cut or emptied by a lost plug
        return None
