import gzip
import hashlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from sfboost_lab.datasets.sources import File, MissingDataError, fetch, locate, verify

pytest.importorskip("pooch", reason="downloads need pooch: pip install 'sfboost[data]'")

CONTENT = np.random.default_rng(0).integers(0, 256, 1_000_000, dtype=np.uint8).tobytes()
SHA256 = hashlib.sha256(CONTENT).hexdigest()

pytestmark = pytest.mark.usefixtures("no_data")


def described(*urls, content=CONTENT, sha256=SHA256):
    return File("set/file.bin", sha256, len(content), urls)


def everything_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_users_folder_comes_before_the_cache_and_the_mirror(server, cache, tmp_path):
    server.files["file.bin"] = CONTENT
    file = described(server.url("file.bin"))
    assert fetch(file, tmp_path) == cache / "set/file.bin"
    (tmp_path / "set").mkdir()
    (tmp_path / "set/file.bin").write_bytes(b"mine")
    assert fetch(file, tmp_path) == tmp_path / "set/file.bin"
    assert server.requests["file.bin"] == 1


def test_the_variable_names_the_folder(tmp_path, monkeypatch):
    (tmp_path / "file.bin.gz").write_bytes(gzip.compress(CONTENT))
    monkeypatch.setenv("SFBOOST_DATA", str(tmp_path))
    path = fetch(described())
    assert path == tmp_path / "file.bin.gz"
    assert verify(described(), path)


def test_a_second_fetch_asks_the_cache_alone(server, cache):
    server.files["file.bin"] = CONTENT
    for _ in range(2):
        assert fetch(described(server.url("file.bin"))).read_bytes() == CONTENT
    assert server.requests["file.bin"] == 1
    assert everything_in(cache) == ["set/file.bin"]


@pytest.mark.parametrize("level", [1, 9])
def test_the_hash_is_of_the_unpacked_bytes(server, cache, level):
    server.files["file.bin.gz"] = gzip.compress(CONTENT, level)
    assert fetch(described(server.url("file.bin.gz"))).read_bytes() == CONTENT


def test_a_download_cut_once_is_taken_up_again(server):
    server.files["file.bin"], server.cuts["file.bin"] = CONTENT, 1
    assert fetch(described(server.url("file.bin"))).read_bytes() == CONTENT
    assert server.requests["file.bin"] == 2


def test_a_download_that_is_always_cut_leaves_nothing(server, cache):
    server.files["file.bin"], server.cuts["file.bin"] = CONTENT, 100
    with pytest.raises(MissingDataError, match="no mirror gave it"):
        fetch(described(server.url("file.bin")))
    assert everything_in(cache) == []


def test_a_wrong_hash_is_refused_and_leaves_nothing(server, cache):
    server.files["file.bin"] = CONTENT[:-1] + b"!"
    with pytest.raises(MissingDataError, match=f"{SHA256} is needed; refused"):
        fetch(described(server.url("file.bin")))
    assert everything_in(cache) == []


def test_the_next_mirror_is_asked_when_one_is_wrong_or_dead(server):
    server.files |= {"bad": b"something else", "good": CONTENT}
    urls = server.url("dead"), server.url("bad"), server.url("good")
    assert fetch(described(*urls)).read_bytes() == CONTENT


def test_a_gzip_bomb_is_refused(server, cache):
    server.files["bomb"] = gzip.compress(bytes(50_000_000))
    with pytest.raises(MissingDataError, match="unpacks to more than the 1000000 bytes"):
        fetch(described(server.url("bomb")))
    assert everything_in(cache) == []


def test_an_endless_answer_is_broken_off(server, cache):
    server.files["endless"] = bytes(8_000_000)
    with pytest.raises(MissingDataError, match="sent more than the 1000000 bytes"):
        fetch(described(server.url("endless")))
    assert everything_in(cache) == []


def test_a_damaged_gzip_is_refused(server, cache):
    server.files["damaged"] = gzip.compress(CONTENT)[:-500]
    with pytest.raises(MissingDataError, match="damaged gzip"):
        fetch(described(server.url("damaged")))
    assert everything_in(cache) == []


def test_offline_says_which_file_to_put_where(server, tmp_path):
    url = server.url("file.bin")
    server.server_close()
    with pytest.raises(MissingDataError) as caught:
        fetch(described(url), tmp_path)
    sentence = str(caught.value)
    assert f"Put it at {tmp_path / 'set/file.bin'}" in sentence
    assert SHA256 in sentence
    assert "SFBOOST_DATA" in sentence
    assert "\n" not in sentence


def test_progress_is_told_to_the_end(server):
    server.files["file.bin"] = CONTENT
    told = []
    fetch(described(server.url("file.bin")), progress=lambda *step: told.append(step))
    assert told[-1] == ("set/file.bin", len(CONTENT), len(CONTENT))
    assert len(told) > 2


PROGRAM = """
import sys
from sfboost_lab.datasets.sources import File, fetch
path, sha256, size, url = sys.argv[1:]
fetch(File(path, sha256, int(size), (url,)))
"""


def start(server, path):
    command = [sys.executable, "-c", PROGRAM, "set/file.bin", SHA256, str(len(CONTENT)), server.url(path)]
    return subprocess.Popen(command, env=dict(os.environ), stderr=subprocess.PIPE)


def test_two_processes_at_once_do_not_collide(server, cache):
    server.files["file.bin"], server.pause = CONTENT, 0.02
    both = [start(server, "file.bin") for _ in range(2)]
    for process in both:
        assert process.communicate(timeout=60)[1] == b""
        assert process.returncode == 0
    assert everything_in(cache) == ["set/file.bin"]
    assert (cache / "set/file.bin").read_bytes() == CONTENT


def test_a_killed_download_shows_no_half_file_and_does_not_stand_in_the_way(server, cache):
    server.files["file.bin"], server.pause = CONTENT, 0.2
    process = start(server, "file.bin")
    deadline = time.monotonic() + 60
    while not server.requests["file.bin"] and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert locate(["set/file.bin"]) is None
    server.pause = 0.0
    assert fetch(described(server.url("file.bin"))).read_bytes() == CONTENT
