"""Tiny files in the real formats, and a real HTTP server on the loopback."""

import gzip
import io
import struct
import tarfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from sfboost_lab.datasets.idx import _TYPES


def write_idx(path, array):
    """Write an array as an idx file."""
    wanted = array.dtype.newbyteorder(">")
    (code,) = (code for code, name in _TYPES.items() if np.dtype(name) == wanted)
    header = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(header + array.astype(wanted).tobytes())


class Server(ThreadingHTTPServer):
    """Serves ``files``; the first ``cuts[path]`` answers break off half-way, each chunk waits ``pause``."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.cuts, self.requests, self.pause = {}, Counter(), Counter(), 0.0

    def url(self, path):
        return f"http://127.0.0.1:{self.server_port}/{path}"

    def handle_error(self, request, client_address):
        """A client that goes away is part of these tests."""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.lstrip("/")
        self.server.requests[path] += 1
        content = self.server.files.get(path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.server.cuts[path] > 0:
            self.server.cuts[path] -= 1
            content = content[: len(content) // 2]
        for start in range(0, len(content), 65_536):
            self.wfile.write(content[start : start + 65_536])
            time.sleep(self.server.pause)

    def log_message(self, *args):
        """Quiet."""


@pytest.fixture
def server():
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """An empty cache for each test; the user's own is never touched."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("SFBOOST_CACHE", str(folder))
    return folder


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("SFBOOST_DATA", raising=False)


@pytest.fixture(scope="session")
def mnist_dir(tmp_path_factory):
    """120 + 40 images in idx files, half of them gzipped."""
    root = tmp_path_factory.mktemp("tiny")
    folder = root / "mnist"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for part, n_rows in (("train", 120), ("t10k", 40)):
        write_idx(
            folder / f"{part}-images-idx3-ubyte", rng.integers(1, 256, (n_rows, 28, 28), dtype=np.uint8)
        )
        write_idx(folder / f"{part}-labels-idx1-ubyte", (np.arange(n_rows) % 10).astype(np.uint8))
    for plain in folder.glob("t10k*"):
        plain.with_name(f"{plain.name}.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    return root


def picture(rng, size=(20, 16)):
    """The bytes of a small JPEG."""
    image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'sfboost[data]'")
    made = io.BytesIO()
    image.fromarray(rng.integers(0, 256, (*size, 3), dtype=np.uint8)).save(made, "JPEG")
    return made.getvalue()


@pytest.fixture(scope="session")
def pictures():
    """Names and bytes of a small ``domain/class/image`` tree: 4 domains, 3 classes, 5 JPEGs each."""
    rng = np.random.default_rng(1)
    return {
        f"pacs/{domain}/{label}/pic_{k:03}.jpg": picture(rng)
        for domain in ("art_painting", "cartoon", "photo", "sketch")
        for label in ("dog", "elephant", "guitar")
        for k in range(5)
    }


@pytest.fixture(scope="session")
def picture_folder(tmp_path_factory, pictures):
    root = tmp_path_factory.mktemp("pictures")
    for name, content in pictures.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


@pytest.fixture(scope="session")
def picture_tar(tmp_path_factory, pictures):
    path = tmp_path_factory.mktemp("tar") / "pacs160.tar"
    with tarfile.open(path, "w") as made:
        for name, content in pictures.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return path
