"""Where outputs go, and that they can be written is known before the work."""

import errno
import subprocess
import sys

import pytest
from hospitals import ROLES

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and modes are another matter there")


def test_standard_output_by_another_name_gets_the_table_and_no_word(files, tmp_path):
    """As in `sfboost predict … -o /dev/fd/1 > table.csv`; a fault could replace /dev/stdout for everybody."""
    table = tmp_path / "table.csv"
    code = "from sfboost.cli import main; main()"
    command = [sys.executable, "-c", code, "predict", files.model, files.new, "-o", "/dev/fd/1"]
    with table.open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=True, timeout=120)
    assert len(table.read_text().splitlines()) == 801
    assert "predicted 800 rows" in done.stderr


def refuse_to_create(*args, dir=None, **options):
    raise OSError(errno.EROFS, "Read-only file system", f"{dir}/.incoming-0123")


@pytest.mark.parametrize("option", ["-o", "--report"])
def test_what_cannot_be_written_is_refused_before_the_work(sfboost, files, tmp_path, monkeypatch, option):
    monkeypatch.setattr("sfboost.whole_files.tempfile.TemporaryFile", refuse_to_create)
    monkeypatch.setattr("sfboost.cli.run.read_training", None)  # the work
    paths = {"-o": "/dev/null", option: tmp_path / "there" / "x.csv"}
    given = [part for pair in paths.items() for part in pair]
    done = sfboost("run", files.train, files.new, *ROLES, *given, code=2)
    told = (
        f"{option} {tmp_path}/there/x.csv cannot be written (Read-only file system): name a file in a folder"
    )
    assert told in done.stderr
    assert ".incoming" not in done.stderr
