"""Where files come from: the user's folder, then the cache, then public mirrors.

The user's folder is only ever read. What is downloaded is checked against the sha256 of its *unpacked* bytes
(gzip headers differ from mirror to mirror) and appears in the cache in one step, whole or not at all.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from sfboost.datasets.cache import cache_folder
from sfboost_lab.datasets.archives import CHUNK, UnsafeArchiveError, content_hash, open_unpacked

DATA_VARIABLE = "SFBOOST_DATA"
ATTEMPTS = 3

Progress = Callable[[str, int, int], None]


class MissingDataError(FileNotFoundError):
    """A file is neither in the user's folder nor in the cache, and no mirror gave it.

    Examples
    --------
    >>> from sfboost_lab.datasets.sources import MissingDataError
    >>> issubclass(MissingDataError, FileNotFoundError)
    True
    """


@dataclass(frozen=True)
class File:
    """One file of a data set.

    Parameters
    ----------
    path : str
        Where it lies in a data folder, with ``/``. The same name with ``.gz`` is also taken.
    sha256 : str
        Of the unpacked bytes.
    size : int
        Number of unpacked bytes; a download that unpacks to more is refused.
    urls : tuple of str
        Public mirrors, in order. Empty where none is known whose bytes can be checked.

    Examples
    --------
    >>> from sfboost_lab.datasets.sources import File
    >>> File("mnist/t10k-labels-idx1-ubyte", "ff7bcf…", 10_008).candidates()[1]
    'mnist/t10k-labels-idx1-ubyte.gz'
    """

    path: str
    sha256: str
    size: int
    urls: tuple[str, ...] = ()

    def candidates(self) -> tuple[str, ...]:
        """Return the names it may have in a data folder."""
        name = self.path.rsplit("/", 1)[-1]
        return (self.path, f"{self.path}.gz", name, f"{name}.gz")


def data_folder(data_dir: Path | None = None) -> Path | None:
    """Return the user's folder: the one given, else the one ``SFBOOST_DATA`` names, else None.

    Examples
    --------
    >>> from pathlib import Path
    >>> from sfboost_lab.datasets.sources import data_folder
    >>> data_folder(Path("files")).name
    'files'
    """
    if data_dir is not None:
        return Path(data_dir)
    named = os.environ.get(DATA_VARIABLE)
    return Path(named) if named else None


def locate(candidates: Iterable[str], data_dir: Path | None = None) -> Path | None:
    """Return the first of these names found in the user's folder, then in the cache; else None.

    Examples
    --------
    >>> from sfboost_lab.datasets.sources import locate
    >>> locate(["no-such-file"]) is None
    True
    """
    names = list(candidates)
    for folder in (data_folder(data_dir), cache_folder()):
        for name in names if folder else ():
            if folder is not None and (folder / name).exists():
                return folder / name
    return None


def fetch(file: File, data_dir: Path | None = None, progress: Progress | None = None) -> Path:
    """Return the path of a file, from the first source that has it.

    Parameters
    ----------
    file : File
        What to get.
    data_dir : Path, optional
        The user's folder; by default the one ``SFBOOST_DATA`` names.
    progress : callable, optional
        Called with (name, bytes done, bytes in all) during a download.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sfboost_lab.datasets.sources import File, fetch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "words.txt").write_text("hello")
    ...     fetch(File("words.txt", "2cf24d…", 5), Path(folder)).name
    'words.txt'
    """
    found = locate(file.candidates(), data_dir)
    if found is not None:
        return found
    reasons = []
    for url in file.urls:
        try:
            return _download(url, file, progress)
        except (OSError, UnsafeArchiveError) as error:
            reasons.append(f"{url} ({_first_line(error)})")
    raise MissingDataError(explain_missing(file.candidates()[:2], data_dir, reasons, file.sha256))


def explain_missing(
    candidates: Iterable[str], data_dir: Path | None, reasons: Iterable[str] = (), sha256: str = ""
) -> str:
    """Return the sentence that says what was looked for, and which file to put where.

    Examples
    --------
    >>> from pathlib import Path
    >>> from sfboost_lab.datasets.sources import explain_missing
    >>> print(explain_missing(["pacs.tar"], Path("files")))  # doctest: +ELLIPSIS
    Did not find pacs.tar in files or in the cache .... Put it at files/pacs.tar, ...
    """
    names = list(candidates)
    folder = data_folder(data_dir)
    cache = f"in the cache {cache_folder()}"
    where = f"in {folder} or {cache}" if folder else f"{cache} ({DATA_VARIABLE} is not set)"
    failed = "; ".join(reasons)
    tried = f", and no mirror gave it: {failed}" if failed else ""
    target = (folder or Path("DATA")) / names[0]
    then = ", or name the folder that has it" if folder else ", and name the folder DATA"
    check = f" (sha256 of the unpacked file: {sha256})" if sha256 else ""
    return (
        f"Did not find {' or '.join(names)} {where}{tried}. "
        f"Put it at {target}{check}{then} with --data-dir, data_dir= or {DATA_VARIABLE}."
    )


def verify(file: File, path: Path) -> bool:
    """Return whether the unpacked bytes at this path are the file's.

    Examples
    --------
    >>> import hashlib, tempfile
    >>> from pathlib import Path
    >>> from sfboost_lab.datasets.sources import File, verify
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.txt")
    ...     _ = path.write_text("hello")
    ...     verify(File("words.txt", hashlib.sha256(b"hello").hexdigest(), 5), path)
    True
    """
    return content_hash(path) == file.sha256


class _Meter:
    """What pooch calls a progress bar: it reports, and it stops a download that is too long."""

    def __init__(self, file: File, progress: Progress | None) -> None:
        self.total = 0
        self._done = 0
        self._file = file
        self._progress = progress

    def update(self, n_bytes: int) -> None:
        self._done += n_bytes
        # A gzip of incompressible bytes is a little longer than they are; twice is never honest.
        if self._done > 2 * self._file.size + 2**20:
            raise OSError(f"sent more than the {self._file.size} bytes the file has")
        if self._progress:
            self._progress(self._file.path, min(self._done, self.total or self._done), self.total)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        pass


def _download(url: str, file: File, progress: Progress | None) -> Path:
    import pooch

    target = cache_folder() / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    # A private folder beside the target: two processes never share a half file, and the last step is a
    # rename on one file system. Whoever comes second replaces the file by equal bytes.
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=target.parent) as incoming:
        raw, unpacked = Path(incoming, "raw"), Path(incoming, "unpacked")
        for attempt in range(1, ATTEMPTS + 1):
            try:
                meter = _Meter(file, progress)
                pooch.HTTPDownloader(progressbar=meter, chunk_size=2**16)(url, str(raw), None)
                break
            except OSError:
                if attempt == ATTEMPTS:
                    raise
        _copy_unpacked(raw, unpacked, max_bytes=file.size)
        if not verify(file, unpacked):
            raise OSError(f"its sha256 is {content_hash(unpacked)} where {file.sha256} is needed; refused")
        unpacked.replace(target)
    return target


def _copy_unpacked(path: Path, target: Path, max_bytes: int) -> None:
    """Write the unpacked bytes of a file, or refuse when there are more than allowed."""
    written = 0
    try:
        with open_unpacked(path) as source, target.open("wb") as out:
            while chunk := source.read(CHUNK):
                written += len(chunk)
                if written > max_bytes:
                    raise UnsafeArchiveError(f"unpacks to more than the {max_bytes} bytes the file has")
                out.write(chunk)
    except (EOFError, zlib.error) as error:
        raise OSError(f"is a damaged gzip file: {error}") from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
