"""From the mirror to the loaded rows, through a real server and the real command."""

import gzip
import hashlib

import pytest

from sfboost_lab.datasets import colored_mnist, load
from sfboost_lab.datasets.archives import open_unpacked
from sfboost_lab.datasets.registry import fetch_all, held
from sfboost_lab.datasets.sources import File, MissingDataError

pytest.importorskip("pooch", reason="downloads need pooch: pip install 'sfboost[data]'")
pytestmark = pytest.mark.usefixtures("no_data")


@pytest.fixture
def mirrored(server, mnist_dir, monkeypatch):
    """The tiny MNIST, served gzipped, as if its hashes were the known ones."""
    files = []
    for file in colored_mnist.FILES:
        (found,) = (mnist_dir / "mnist").glob(f"{file.path.rsplit('/', 1)[1]}*")
        with open_unpacked(found) as source:
            content = source.read()
        server.files[f"{file.path}.gz"] = gzip.compress(content)
        url = server.url(f"{file.path}.gz")
        files.append(File(file.path, hashlib.sha256(content).hexdigest(), len(content), (url,)))
    monkeypatch.setattr(colored_mnist, "FILES", tuple(files))
    return server


@pytest.fixture
def command():
    testing = pytest.importorskip("typer.testing", reason="the command needs 'sfboost[app]'")
    from sfboost_lab.commands.data import app

    return lambda *arguments: testing.CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_nothing_is_asked_of_a_mirror_before_it_is_needed(mirrored):
    assert [holding.path for holding in held("colored_mnist")] == [None] * 4
    assert sum(mirrored.requests.values()) == 0


def test_fetched_files_are_genuine_and_load(mirrored, cache):
    got = fetch_all("colored_mnist")
    assert all(holding.genuine for holding in got)
    assert all(holding.path.is_relative_to(cache) for holding in got)
    assert len(load("colored_mnist").domain("test-0.1")) == 40
    assert set(mirrored.requests.values()) == {1}


def test_loading_fetches_what_is_missing(mirrored):
    assert len(load("colored_mnist").domain("train-0.9")) == 50


def test_the_command_fetches_and_tells_the_verdict(mirrored, command):
    done = command("fetch", "colored_mnist")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("sha256 as known") == 4
    again = command("path", "colored_mnist")
    assert len(again.stdout.splitlines()) == 4


def test_a_dead_mirror_is_one_sentence_of_the_command(mirrored, command, tmp_path):
    mirrored.files.clear()
    done = command("fetch", "colored_mnist", "--data-dir", tmp_path)
    assert done.exit_code == 2
    assert f"Put it at {tmp_path}/mnist/train-images-idx3-ubyte" in done.stderr
    assert "404" in done.stderr


def test_folders_are_found_but_have_no_hash(picture_folder):
    (holding,) = fetch_all("pacs", picture_folder)
    assert holding.path == picture_folder / "pacs"
    assert holding.genuine is None
    with pytest.raises(MissingDataError, match="Put it at"):
        fetch_all("camelyon17", picture_folder)
