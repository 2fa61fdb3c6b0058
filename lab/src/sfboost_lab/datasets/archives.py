"""Reading archives without trusting them.

Paths that leave the folder, links, devices and contents far larger than the archive are refused. Unpacking
goes to a private folder that is renamed at the end, or removed: of what is refused nothing is left.
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
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from sfboost.datasets.cache import cache_folder

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


#: What an archive may hold: bytes, files, and how many times its own size.
MAX_BYTES, MAX_FILES, MAX_RATIO = 20 * GIB, 2_000_000, 200


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


def unpack(archive: Path, target: Path) -> Path:
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
    allowed = min(MAX_BYTES, MAX_RATIO * max(archive.stat().st_size, CHUNK))
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=target.parent) as incoming:
        root, total = Path(incoming, "content"), 0
        root.mkdir()
        try:
            for number, (name, size, source) in enumerate(_files(archive)):
                total += size
                if total > allowed or number >= MAX_FILES:
                    raise UnsafeArchiveError(
                        f"{archive.name} unpacks to more than {allowed} bytes or {MAX_FILES} files, far more "
                        "than its size suggests; it was not unpacked."
                    )
                (root / check_name(name)).parent.mkdir(parents=True, exist_ok=True)
                with (root / name).open("wb") as out:
                    # Both readers stop at the size that was counted, whatever follows in the archive.
                    shutil.copyfileobj(source, out, CHUNK)
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error) as error:
            raise UnsafeArchiveError(
                f"{archive.name} cannot be read as a tar or zip archive: {error}"
            ) from error
        try:
            root.replace(target)
        except OSError:
            # Another process was first; its content is the same.
            if not target.is_dir():
                raise
    return target


def _files(archive: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Name, size and content of each regular file; links and devices are refused."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)
                _check_kind(info.filename, kind in (0, stat.S_IFREG, stat.S_IFDIR))
                if not info.is_dir():
                    with zipped.open(info) as source:
                        yield info.filename, info.file_size, source
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            # Sparse members claim sizes their bytes do not have.
            _check_kind(member.name, member.isdir() or (member.isreg() and not member.issparse()))
            content = tar.extractfile(member)
            if content is not None:
                yield member.name, member.size, content


def _check_kind(name: str, regular: bool) -> None:
    if not regular:
        raise UnsafeArchiveError(
            f"The archive has a member {name!r} that is a link or a device; it was not unpacked."
        )


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
