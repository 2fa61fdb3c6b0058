"""Readers that leave early: `sfboost … | head -1` is no failure, and work that was asked for is done."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hospitals import ROLES

COMMAND = (sys.executable, "-c", "from sfboost.cli import main; main()")


def unread(arguments, *, errors=subprocess.PIPE):
    """Run a command whose standard output nobody reads; its exit code and complaints."""
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=errors) as process:
        process.stdout.close()
        complaints = b"" if process.stderr is None else process.stderr.read()
    return process.returncode, complaints


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "{adapted}", "{new}", "--row", "1"),
        ("predict", "{adapted}", "{new}", "-o", "-", "-q"),
        pytest.param(("explain", "{adapted}", "{new}", "--row", "1", "--json"), marks=pytest.mark.long),
        pytest.param(("evaluate", "{train}", *ROLES), marks=pytest.mark.long),
        ("fit", "--help"),
        ("--version",),
    ],
)
def test_a_reader_that_has_had_enough_is_no_error(files, arguments):
    code, complaints = unread([part.format(**vars(files)) for part in arguments])
    assert code == 0
    assert [line for line in complaints.splitlines() if not line.startswith(b"note:")] == []


@pytest.mark.skipif(os.name != "posix", reason="a shell of Unix closes streams")
@pytest.mark.parametrize(
    "closed", [">&- 2>&-", *(pytest.param(each, marks=pytest.mark.long) for each in (">&-", "<&- >&-"))]
)
def test_the_work_is_done_although_streams_are_closed(files, tmp_path, closed):
    command = shlex.join(
        [*COMMAND, "predict", str(files.adapted), str(files.new), "-o", str(tmp_path / "p.csv")]
    )
    done = subprocess.run(f"{command} {closed}", shell=True, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == len(Path(files.new).read_text().splitlines())
