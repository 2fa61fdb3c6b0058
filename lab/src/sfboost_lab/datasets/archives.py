"""Reading archives without trusting them.

Nothing is written before every member has been looked at: paths that leave the folder, links, devices and
contents far larger than the archive are refused. Unpacking goes to a private folder, renamed at the end.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from sfboost.datasets.cache import cache_folder
from sfboost.whole_files import put_in_place

GIB = 2**30
CHUNK = 2**20
_GZIP_MAGIC = b"\x1f\x8b"


class UnsafeArchiveError(ValueError):
    """An archive holds something that must not be unpacked.

    Examples
    --------
    >>> from sfboost_lab.datasets.archives import UnsafeArchiveError
    >>> issubclass(UnsafeArchiveError, ValueError)
    True
    """


@dataclass(frozen=True)
class Limits:
    """What an archive may hold.

    Examples
    --------
    >>> from sfboost_lab.datasets.archives import Limits
    >>> Limits().max_ratio
    200
    """

    max_bytes: int = 20 * GIB
    max_members: int = 2_000_000
    max_ratio: int = 200


@dataclass(frozen=True)
class Member:
    """A regular file within an archive.

    Examples
    --------
    >>> from sfboost_lab.datasets.archives import Member
    >>> Member("photo/dog/1.jpg", 10).name
    'photo/dog/1.jpg'
    """

    name: str
    size: int


def check_name(name: str) -> str:
    """Return a member's name, or refuse one that could leave the folder it is unpacked into.

    Examples
    --------
    >>> from sfboost_lab.datasets.archives import check_name
    >>> check_name("pacs/photo/dog/1.jpg")
    'pacs/photo/dog/1.jpg'
    """
    windows = PureWindowsPath(name)
    absolute = PurePosixPath(name).is_absolute() or windows.is_absolute() or windows.drive or windows.root
    if absolute or ".." in windows.parts or "\x00" in name:
        raise UnsafeArchiveError(
            f"The archive has a member {name!r} that points outside its folder; it was not unpacked. "
            "Get the file from a source you trust."
        )
    return name


def members(archive: Path, limits: Limits | None = None) -> list[Member]:
    """Return the regular files of a tar or zip archive after looking at every member.

    Examples
    --------
    >>> import tempfile, zipfile
    >>> from pathlib import Path
    >>> from sfboost_lab.datasets.archives import members
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(Path(folder, "a.zip"), "w") as made:
    ...         made.writestr("words.txt", "hello")
    ...     members(Path(folder, "a.zip"))
    [Member(name='words.txt', size=5)]
    """
    limits = limits or Limits()
    allowed = min(limits.max_bytes, limits.max_ratio * max(archive.stat().st_size, CHUNK))
    found: list[Member] = []
    total = 0
    with _opened(archive) as opened:
        for member in _zip_members(opened) if isinstance(opened, zipfile.ZipFile) else _tar_members(opened):
            total += member.size
            # Before the next header is read: skipping a huge member already costs its decompression.
            if total > allowed or len(found) >= limits.max_members:
                raise UnsafeArchiveError(
                    f"{archive.name} unpacks to more than {allowed} bytes or {limits.max_members} files, far "
                    "more than its size suggests; it was not unpacked."
                )
            found.append(member)
    return found


def unpack(archive: Path, target: Path, limits: Limits | None = None) -> Path:
    """Unpack a tar or zip archive into a new folder, whole or not at all.

    Examples
    --------
    >>> import tempfile, zipfile
    >>> from pathlib import Path
    >>> from sfboost_lab.datasets.archives import unpack
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(Path(folder, "a.zip"), "w") as made:
    ...         made.writestr("deep/words.txt", "hello")
    ...     (unpack(Path(folder, "a.zip"), Path(folder, "out")) / "deep/words.txt").read_text()
    'hello'
    """
    checked = {member.name: member for member in members(archive, limits)}
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=target.parent) as incoming:
        root = Path(incoming, "content")
        root.mkdir()
        with _opened(archive) as opened:
            for name, source in _contents(opened, checked):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                with (root / name).open("wb") as out:
                    # Both readers stop at the size that was counted, whatever follows in the archive.
                    shutil.copyfileobj(source, out, CHUNK)
        try:
            put_in_place(root, target)
        except OSError:
            # Another process was first; its content is the same.
            if not target.is_dir():
                raise
    return target


def unpacked(path: Path) -> Path:
    """Return the folder itself, or the one in the cache that an archive is unpacked into the first time.

    That is named by the content of the archive, so a changed archive is never mistaken for the old one.

    Examples
    --------
    >>> unpacked(Path())
    PosixPath('.')
    """
    if not path.is_file():
        return path
    target = cache_folder() / "unpacked" / content_hash(path)[:32]
    return target if target.is_dir() else unpack(path, target)


def content_hash(path: Path) -> str:
    """Return the sha256 of a file's bytes, unpacked where it is a gzip.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sfboost_lab.datasets.archives import content_hash
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "words.txt").write_text("hello")
    ...     content_hash(Path(folder, "words.txt"))[:6]
    '2cf24d'
    """
    digest = hashlib.sha256()
    with open_unpacked(path) as source:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def open_unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, through gzip where its first bytes say so.

    Examples
    --------
    >>> import gzip, tempfile
    >>> from pathlib import Path
    >>> from sfboost_lab.datasets.archives import open_unpacked
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a").write_bytes(gzip.compress(b"hello"))
    ...     with open_unpacked(Path(folder, "a")) as source:
    ...         source.read()
    b'hello'
    """
    with path.open("rb") as raw:
        zipped = raw.read(2) == _GZIP_MAGIC
        raw.seek(0)
        if zipped:
            with gzip.open(raw, "rb") as source:
                yield source  # type: ignore[misc]
        else:
            yield raw


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile | zipfile.ZipFile]:
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                yield zipped
        else:
            with tarfile.open(archive) as tar:
                yield tar
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise UnsafeArchiveError(f"{archive.name} cannot be read as a tar or zip archive: {error}") from error


def _tar_members(opened: tarfile.TarFile) -> Iterator[Member]:
    for info in opened:
        check_name(info.name)
        if info.isdir():
            continue
        # Sparse members claim sizes their bytes do not have, so they are refused with links and devices.
        if not info.isreg() or info.issparse():
            raise UnsafeArchiveError(
                f"The archive has a member {info.name!r} that is a link or a device; it was not unpacked."
            )
        yield Member(info.name, info.size)


def _zip_members(opened: zipfile.ZipFile) -> Iterator[Member]:
    for info in opened.infolist():
        check_name(info.filename)
        if info.is_dir():
            continue
        mode = info.external_attr >> 16
        if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
            raise UnsafeArchiveError(
                f"The archive has a member {info.filename!r} that is a link; it was not unpacked."
            )
        yield Member(info.filename, info.file_size)


def _contents(
    opened: tarfile.TarFile | zipfile.ZipFile, checked: dict[str, Member]
) -> Iterator[tuple[str, IO[bytes]]]:
    if isinstance(opened, zipfile.ZipFile):
        for name in checked:
            with opened.open(name) as source:
                yield name, source
        return
    for info in opened:
        if info.isreg() and info.name in checked:
            source_or_none = opened.extractfile(info)
            if source_or_none is not None:
                yield info.name, source_or_none
