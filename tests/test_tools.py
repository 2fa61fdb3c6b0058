"""The gates themselves: what they are to find, they find."""

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import check_golden  # noqa: E402
import kills  # noqa: E402
import mutants  # noqa: E402


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_golden_value_that_changes_in_silence_is_found(tmp_path):
    def commit(message, **files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        author = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        for words in (("add", "-A"), (*author, "commit", "-qm", message)):
            subprocess.run(["git", *words], cwd=tmp_path, check=True)

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit("before the check", tests__golden__expected="1")
    (tmp_path / "tools").mkdir()
    (tmp_path / check_golden.HERE).write_text("")
    commit("the check")
    commit("another file", README="1")
    commit("said\n\nGolden: the second moment was that of other rows", tests__golden__expected="2")
    assert check_golden.unexplained(tmp_path) == []
    commit("silent\n\nGolden:", tests__golden__expected="3")
    assert [found.split(" ", 1)[1] for found in check_golden.unexplained(tmp_path)] == ["silent"]


def test_every_fault_has_its_place():
    for mutant in mutants.MUTANTS:
        text = (mutants.SOURCE / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, mutant
        compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")


def test_half_a_file_and_litter_are_found():
    command = kills.Command((), ("out.sfb",))
    complete = {"out.sfb": b"whole", "train.csv": b"1"}
    for found, killed, said in [
        (complete | {"out.sfb": kills.OLD}, False, []),
        (complete | {"out.sfb": b"who"}, False, ["out.sfb is half written (3 bytes)"]),
        (complete | {".incoming-1.sfb": b""}, False, [".incoming-1.sfb lies about"]),
        (complete | {".incoming-1.sfb": b""}, True, []),
        ({"out.sfb": b"whole"}, True, ["files are gone: ['train.csv']"]),
    ]:
        assert list(kills.faults_of(command, complete, found, killed)) == said


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads the processor's time from /proc")
def test_a_signal_at_any_moment_leaves_whole_files(capsys):
    pytest.importorskip("typer", reason="needs the app extra")
    assert kills.main(["--kills", "5", "--commands", "adapt,predict"]) == 0, capsys.readouterr().out


def test_all_that_is_installed_is_pinned():
    """What the library, its extras and the tests need, and what that needs, as far as it is here."""
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    pinned = {re.sub(r"[-_.]+", "-", name).lower() for name in pinned}
    waiting, seen = ["sfboost"], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # an extra, or of another system
            continue
        if name == "sfboost":
            wanted = [need for need in needs if "'release'" not in need and '"release"' not in need]
        else:
            wanted = [need for need in needs if "extra ==" not in need]
        waiting += [re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", need)[0]).lower() for need in wanted]
    here = {name for name in seen if _is_here(name)} - {"sfboost"}
    assert here <= pinned, here - pinned


def _is_here(name):
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
