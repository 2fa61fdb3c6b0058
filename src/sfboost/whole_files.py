"""Files written whole or not at all: the one way in which this library puts a file somewhere.

What is written lies beside its target, under a name of our own, and takes the target's name at the end. Links
are followed, a file keeps its mode and owner, and a pipe or a device, which must not be replaced, gets the
bytes.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_PRIVATE = stat.S_IRUSR | stat.S_IWUSR
_OURS = re.compile(r"\.incoming-[0-9a-f]{16}(\..*)?")


# A full disk, a quota, a limit of the size of files.
_NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)


@contextmanager
def whole_file(target: str | Path) -> Iterator[Path]:
    """A path to write to, with the ending of `target`, which is put in place at the end.

    If anything fails, what was there before stays.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "page.html")) as part:
    ...         _ = part.write_text("<p>")
    ...         Path(folder, "page.html").exists()
    ...     Path(folder, "page.html").read_text()
    False
    '<p>'
    """
    target = Path(target)
    there = _what_is_there(target)
    if there is not None and not stat.S_ISREG(there.st_mode):
        with _part_in(Path(tempfile.gettempdir()), target.suffix) as part:
            part.chmod(_PRIVATE)
            yield part
            with part.open("rb") as source, target.open("wb", buffering=0) as sink:
                shutil.copyfileobj(source, sink)
        return
    target = Path(os.path.realpath(target))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"The folder {target.parent} does not exist: make it first, or save elsewhere."
        )
    with _part_in(target.parent, target.suffix) as part:
        if there is not None:  # nobody sees more of the part than of the file
            part.chmod(stat.S_IMODE(there.st_mode) | _PRIVATE)
        try:
            yield part
        except OSError as error:
            if error.errno in _NO_ROOM and error.filename is None:
                error.filename = str(target)  # the system does not say where
            raise
        if there is not None:
            _keep_owner_and_mode(part, there)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target)


def refuse_unwritable(target: str | Path) -> None:
    """Raise `OSError`, in the words of the system, if nothing can be written where `target` is to be.

    Folders that are not there yet are taken to be made. Nothing is left behind.
    """
    there = _what_is_there(Path(target))
    if there is not None and not stat.S_ISREG(there.st_mode):
        return
    folder = Path(os.path.realpath(target)).parent
    while not folder.exists():
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_whole(target: str | Path, data: bytes) -> None:
    """Put `data` at `target`: a reader sees the old file or the new one, never half of it."""
    with whole_file(target) as part:
        part.write_bytes(data)


def _what_is_there(target: Path) -> os.stat_result | None:
    try:
        there = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(f"{target} is a folder: name a file in it.")
    if stat.S_ISBLK(there.st_mode):
        raise OSError(errno.EINVAL, f"{target} is a disk: name a file on it")
    return there


def _keep_owner_and_mode(part: Path, there: os.stat_result) -> None:
    if hasattr(os, "chown"):
        for owner in ((-1, there.st_gid), (there.st_uid, -1)):
            with suppress(PermissionError):  # only root can give files away
                os.chown(part, *owner)
    part.chmod(stat.S_IMODE(there.st_mode))


@contextmanager
def _part_in(folder: Path, suffix: str) -> Iterator[Path]:
    for left in folder.glob(".incoming-*"):
        if _OURS.fullmatch(left.name) and left.is_file() and not left.is_symlink():
            _remove_if_orphaned(left)
    part = folder
    try:
        part, held = _claimed(folder, suffix)
        with held:
            yield part
    except OSError as error:
        if error.filename is not None and Path(error.filename).name.startswith(".incoming-"):
            error.filename = str(folder)  # the name of the part is nobody's but ours
        raise
    finally:
        if part != folder:
            with suppress(OSError):  # there may be none, nor a way to remove it
                part.unlink(missing_ok=True)


def _claimed(folder: Path, suffix: str) -> tuple[Path, IO[bytes]]:
    """A new part, open and locked.

    Until it is locked another process may take it for one that was left behind, and remove it: then another
    one is made.
    """
    while True:
        part = folder / f".incoming-{secrets.token_hex(8)}{suffix}"
        held = part.open("xb")
        with suppress(FileNotFoundError):
            free = _lock(held) is not False
            if free and os.path.samestat(part.stat(), os.fstat(held.fileno())):
                return part, held
        held.close()


def _remove_if_orphaned(part: Path) -> None:
    """Remove what a process that was killed left behind."""
    with suppress(OSError), part.open("rb") as file:
        if _lock(file):
            part.unlink()


def _lock(file: IO[bytes]) -> bool | None:
    """Whether the lock could be had; None where there are none (Windows, some file systems).

    It ends with its process, however that ends: so it tells who lives.
    """
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True
