"""Ctrl-C, at moments that are chosen and not timed: what is said is what is on the disk."""

import shutil
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are another matter there")

# Python tells what it is about to do, and the signal comes first: a part is removed after it took its name.
SCRIPT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
event, text, count, name = sys.argv.pop(1), sys.argv.pop(1), int(sys.argv.pop(1)), sys.argv.pop(1)
def hook(what, arguments):
    global count
    if what == event and text in " ".join(map(str, arguments)):
        count -= 1
        if count == 0:
            os.kill(os.getpid(), getattr(signal, name))
            os.kill(os.getpid(), getattr(signal, name))
sys.addaudithook(hook)
from sfboost.cli import main
main()
"""


def interrupted(moment, *arguments, name="SIGINT"):
    """The command, interrupted at the moment (event, text in it, how many of them)."""
    words = [*moment, name, *arguments]
    command = [sys.executable, "-c", SCRIPT, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode == 128 + getattr(signal, name), done.stderr
    return done.stderr


@pytest.mark.long
@pytest.mark.parametrize("module", ["typer", "sklearn.base", "sfboost.cli.inputs"])
def test_before_the_command_begins_one_sentence_is_said(module):
    assert interrupted(("import", module, 1), "run", "--help") == "error: Interrupted; no file was changed.\n"


@pytest.fixture
def folder(files, tmp_path):
    """A folder with an older model and report."""
    shutil.copy(files.model, tmp_path / "model.sfb")
    shutil.copy(files.new, tmp_path / "new.csv")
    (tmp_path / "a.sfb").write_text("old")
    (tmp_path / "r.html").write_text("old")
    return tmp_path


@pytest.mark.parametrize(
    ("moment", "changed"),
    [
        (("open", "new.csv", 1), []),
        pytest.param(("os.rename", "a.sfb", 1), [], marks=pytest.mark.long),
        pytest.param(("os.remove", ".incoming-", 1), ["a.sfb"], marks=pytest.mark.long),
        (("os.chmod", ".html", 1), ["a.sfb"]),
        (("os.remove", ".incoming-", 2), ["a.sfb", "r.html"]),
    ],
)
def test_what_is_said_to_be_written_is_written_and_nothing_else_is(folder, moment, changed):
    name = "SIGTERM" if moment[0] == "os.chmod" else "SIGINT"
    new = [folder / "new.csv", "-o", folder / "a.sfb", "--report", folder / "r.html"]
    said = interrupted(moment, "adapt", folder / "model.sfb", *new, name=name)
    what = f"written before that: {', '.join(str(folder / each) for each in changed)}"
    assert said.splitlines()[-1] == f"error: Interrupted; {what if changed else 'no file was changed'}."
    assert [each for each in ("a.sfb", "r.html") if (folder / each).read_bytes() != b"old"] == changed
    assert sorted(entry.name for entry in folder.iterdir()) == ["a.sfb", "model.sfb", "new.csv", "r.html"]


def test_a_signal_while_an_object_is_cleaned_up_is_not_lost():
    """Python drops what is raised there, with a traceback, and goes on."""
    script = """
import os, signal, time
from sfboost.cli import interruption

class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)

interruption.catch_signals()
try:
    held = Held()
    del held
    time.sleep(20)
    print("went on")
except interruption.Interrupted as stop:
    print(stop.code)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("143\n", "")
