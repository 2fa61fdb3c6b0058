"""Where outputs go, for every command that writes: into what is there, through links, with the modes kept."""

import errno
import os
import stat
import subprocess
import sys
import threading

import pytest
from hospitals import ROLES

from sfboost.cli.inputs import refuse_collisions

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and modes are another matter there")

FIT = (
    "fit",
    "{train}",
    "--target",
    "sick",
    "--domain",
    "hospital",
    "--stable",
    "age,sex,chol",
    "--no-evaluate",
)
COMMANDS = {
    "fit": ((*FIT, "--id", "patient", "-o", "{out}"), b"PK"),
    "adapt": (("adapt", "{model}", "{new}", "-o", "{out}"), b"PK"),
    "report": (
        ("adapt", "{model}", "{new}", "-o", "{folder}/a.sfb", "--report", "{out}"),
        b"<!doctype html>",
    ),
    "predict": (("predict", "{model}", "{new}", "-o", "{out}"), b'"patient",'),
}
ENDINGS = {"fit": ".sfb", "adapt": ".sfb", "report": ".html", "predict": ".csv"}


@pytest.fixture(params=COMMANDS)
def command(request, files, tmp_path, sfboost):
    """Run a command so that it writes to a path; with the first bytes that it must write."""
    words, start = COMMANDS[request.param]

    def run(out):
        places = {**vars(files), "out": out, "folder": tmp_path}
        sfboost(*(word.format(**places) for word in words))

    run.start, run.ending = start, ENDINGS.get(request.param, ".x")
    return run


def test_a_pipe_is_written_into_and_stays_a_pipe(command, tmp_path):
    pipe, got = tmp_path / f"pipe{command.ending}", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    command(pipe)
    reader.join(20)
    assert got, "the pipe got nothing"
    assert got[0].startswith(command.start)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_link_is_followed_and_the_mode_of_its_file_kept(command, tmp_path):
    real, link = tmp_path / f"real{command.ending}", tmp_path / f"link{command.ending}"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    command(link)
    assert link.is_symlink()
    assert real.read_bytes().startswith(command.start)
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


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


@pytest.mark.parametrize("option", ["-o", "--report", "--card"])
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


def test_looking_whether_a_file_can_be_written_leaves_nothing(tmp_path):
    refuse_collisions({}, {"-o": tmp_path / "not" / "there" / "x.csv", "--report": "-"})
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"file/x\.csv cannot be written"):
        refuse_collisions({}, {"-o": tmp_path / "file" / "x.csv"})
