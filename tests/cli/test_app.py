"""The command as a person meets it."""

import subprocess
import sys

import pytest

typer = pytest.importorskip("typer", reason="the [app] extra brings the command")
pytest.importorskip("matplotlib", reason="the [app] extra brings the figure")

from typer.testing import CliRunner  # noqa: E402

from sfboost import __version__  # noqa: E402
from sfboost.cli import demo  # noqa: E402
from sfboost.cli.app import app  # noqa: E402


@pytest.mark.parametrize("words", [[]])
def test_without_a_command_the_help_is_shown_as_it_is(words):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Usage: ")
    assert "Commands:" in lines
    assert not any("\\n" in line or line.startswith("error") for line in lines)


@pytest.mark.long
def test_the_demo_writes_a_figure_and_tells_the_story_of_the_method(tmp_path, monkeypatch):
    seen, run_once = [], demo.run_once
    monkeypatch.setattr(demo, "run_once", lambda seed: (seen.append(run_once(seed)), seen[-1])[1])
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--repeats", "1"])
    assert result.exit_code == 0, result.output
    assert "labelled (ORACLE)" in result.output
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    (accuracy,) = seen
    assert list(accuracy) == [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
    reversed_domain = accuracy[0.1]
    assert reversed_domain["pooled"] < 25
    assert reversed_domain["stable"] > 65
    assert reversed_domain["answer"] > 86
    assert abs(reversed_domain["answer"] - reversed_domain["labelled"]) < 4


def test_version():
    assert CliRunner().invoke(app, ["--version"]).output.strip() == f"sfboost {__version__}"


def test_a_missing_extra_is_named():
    """Where typer is not installed the command says what to install, without a traceback."""
    code = "import sys; sys.modules['typer'] = None; from sfboost.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == "The sfboost command needs typer: pip install 'sfboost[app]'"


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_list_of_commands_brings_no_library(option):
    """Half a second of scikit-learn is not needed to say what there is."""
    code = (
        "import sys\nfrom sfboost.cli import main\ntry:\n    main()\nfinally:\n"
        "    print(sorted({'sklearn', 'pandas', 'torch', 'numpy', 'sfboost_lab'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, option], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


def test_every_command_is_found_and_described():
    from sfboost.cli.app import COMMANDS, load_command

    shown = CliRunner().invoke(app, ["--help"], terminal_width=200).output
    for name, (_, summary) in COMMANDS.items():
        assert name in shown
        assert summary.split(".")[0][:40] in shown
        command = load_command(name)
        assert command.help
        assert "Exit codes: 0 done" in command.epilog


def test_help_cuts_nothing_on_a_narrow_terminal():
    """A table of rich cut the names of options, and of commands a plain list cuts what they do."""
    from sfboost.cli.app import COMMANDS, load_command

    for words in ([], *([name] for name in COMMANDS)):
        shown = CliRunner().invoke(app, [*words, "--help"], terminal_width=80, env={"COLUMNS": "80"}).output
        assert "…" not in shown.replace("NAME…", "").replace("[NAME]…", "")
        assert "..." not in shown.replace("[ARGS]...", "").replace("]...", "")
        assert max(map(len, shown.splitlines())) <= 80
    shown = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "80"}).output
    for option in load_command("run").params:
        assert all(name in shown for name in option.opts if name.startswith("--"))


def test_a_misspelt_command_is_answered_with_the_nearest():
    done = CliRunner().invoke(app, ["evalute"])
    assert done.exit_code == 2
    assert "evaluate" in done.output
