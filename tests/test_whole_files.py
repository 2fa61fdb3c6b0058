"""One way to write a file: whole or not at all, into what is there."""

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress

import pytest

from sfboost.whole_files import whole_file, write_whole


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.sfb"
    write_whole(path, b"old")

    def full(descriptor):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["model.sfb"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed_even_to_a_file_that_is_not_there_yet(tmp_path, there):
    real, link = tmp_path / "real.sfb", tmp_path / "link.sfb"
    if there:
        real.write_bytes(b"old")
    link.symlink_to("real.sfb")
    write_whole(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_links_in_a_circle_are_an_error_and_stay(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(OSError, match="symbolic links"):
        write_whole(one, b"new")
    assert names(tmp_path) == ["one", "other"]


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o664, 0o444])
def test_a_file_keeps_its_mode_and_its_part_shows_no_more(tmp_path, mode):
    path = tmp_path / "model.sfb"
    path.write_bytes(b"old")
    path.chmod(mode)
    with whole_file(path) as part:
        part.write_bytes(b"new")
        assert stat.S_IMODE(part.stat().st_mode) == mode | 0o600
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    (tmp_path / "any").write_bytes(b"")
    write_whole(tmp_path / "model.sfb", b"")
    assert (tmp_path / "model.sfb").stat().st_mode == (tmp_path / "any").stat().st_mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_file_keeps_its_owner(tmp_path):
    path = tmp_path / "model.sfb"
    path.write_bytes(b"old")
    os.chown(path, 65534, 65534)
    write_whole(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_gets_the_bytes_and_stays_a_pipe(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, b"x" * 300_000)
    reader.join(20)  # a pipe that was replaced is never opened
    assert got == [b"x" * 300_000]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes devices")
def test_a_device_stays_a_device_and_a_full_one_is_an_error(tmp_path):
    for name, minor in (("null", 3), ("full", 7)):
        os.mknod(tmp_path / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
    (tmp_path / "link").symlink_to("null")
    try:
        (tmp_path / "null").write_bytes(b"")
    except PermissionError:
        pytest.skip("devices do not work on this file system")
    write_whole(tmp_path / "null", b"new")
    write_whole(tmp_path / "link", b"new")
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "full", b"new")
    assert all(stat.S_ISCHR((tmp_path / name).stat().st_mode) for name in ("null", "full"))
    assert names(tmp_path) == ["full", "link", "null"]


def test_a_folder_is_an_error_whether_it_is_there_or_not(tmp_path):
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        write_whole(tmp_path, b"")
    with pytest.raises(FileNotFoundError, match="does not exist: make it first"):
        write_whole(tmp_path / "no" / "model.sfb", b"")


KILLED = """
import os, signal, sys
from sfboost.whole_files import whole_file
with whole_file(sys.argv[1]) as part:
    part.write_bytes(b"half")
    print(part.name, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_the_next_write_removes_what_a_killed_one_left_and_nothing_else(tmp_path):
    kept = [".incoming-mail", ".incoming-0123456789abcdef-mine", "other"]
    for name in kept:
        (tmp_path / name).write_bytes(b"a person's")
    command = [sys.executable, "-c", KILLED, str(tmp_path / "model.sfb")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as dead, subprocess.Popen(command, **pipes) as alive:
        left, busy = dead.stdout.readline().strip(), alive.stdout.readline().strip()
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert (tmp_path / left).exists()
        write_whole(tmp_path / "another.sfb", b"new")
        assert names(tmp_path) == sorted([*kept, "another.sfb", busy])
        alive.communicate("")
    assert (tmp_path / "model.sfb").read_bytes() == b"half"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_goes_to_a_pipe_waits_where_nobody_else_reads_it_and_is_removed(tmp_path, monkeypatch):
    (tmp_path / "waiting").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "waiting"))
    os.mkfifo(tmp_path / "pipe")
    with suppress(RuntimeError), whole_file(tmp_path / "pipe") as part:
        assert part.parent == tmp_path / "waiting"
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
        raise RuntimeError("halfway")
    assert names(tmp_path / "waiting") == []


def _write_many(folder, number):
    for i in range(300):
        with whole_file(folder / f"{number}-{i % 20}.bin") as part:
            part.write_bytes(b"x" * 100)


@pytest.mark.long
def test_processes_that_write_into_one_folder_leave_each_others_parts_alone(tmp_path):
    writers = [multiprocessing.Process(target=_write_many, args=(tmp_path, k)) for k in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert len(list(tmp_path.iterdir())) == 80
