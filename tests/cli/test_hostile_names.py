"""Names that want to talk to the terminal, through every command, on a terminal."""

import json
import os
import re
import subprocess
import sys
from contextlib import suppress

import pytest
from hospitals import ROLES, reversed_hospital, training

pty = pytest.importorskip("pty", reason="no terminals of that kind here")

EVIL = "x\\[/]\x1b]0;owned\x07\x9b2J\u202e\nnote: all is well\r[bold]:heart:"
SCRIPT = """
import json, sys
from sfboost.cli import main
for arguments in json.load(open(sys.argv[1])):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        print(f"\\n@@{end.code or 0}", flush=True)
"""
COLOURS = re.compile(rb"\x1b\[[0-9;]*m")


def on_a_terminal(folder, *commands):
    """What a terminal gets of each command, both streams, without colours; and how it ended."""
    (folder / "commands.json").write_text(json.dumps([[str(word) for word in words] for words in commands]))
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, folder / "commands.json"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "200"},
        cwd=folder,
    ):
        os.close(theirs)
        got = b""
        with suppress(OSError):  # the other side is closed
            while chunk := os.read(ours, 65536):
                got += chunk
    os.close(ours)
    parts = re.split(rb"\r\n@@(\d+)\r\n", COLOURS.sub(b"", got))
    assert len(parts) == 2 * len(commands) + 1, got
    return [(assert_harmless(text), int(code)) for text, code in zip(parts[::2], parts[1::2], strict=False)]


# What rich draws its own waiting and tables with: the cursor hidden, shown, moved up; a line cleared.
DRAWING = re.compile(rb"\x1b\[\?25[lh]|\x1b\[1A|\x1b\[2K")


def assert_harmless(got):
    text = DRAWING.sub(b"", got).decode()
    assert "Traceback" not in text
    for obeyed in ("\x1b", "\x07", "\x9b", "\u202e"):
        assert obeyed not in text, text
    assert not re.search(r"[\r\n]note: all is well", text), text
    assert "❤" not in text
    return text


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """Tables in which every column, class, domain and category, and the file itself, has a hostile name."""
    folder = tmp_path_factory.mktemp("evil") / EVIL.replace("/", "")
    folder.mkdir()

    def spoil(table):
        for column in ("hospital", "sick", "sex", "ward", "patient"):
            table[column] = table[column] + EVIL
        return table.rename(columns={name: name + EVIL for name in table.columns})

    spoil(training()).to_parquet(folder / "train.parquet", index=False)
    spoil(reversed_hospital()).to_parquet(folder / "new.parquet", index=False)
    spoil(reversed_hospital().assign(hospital=["p", "q"] * 400)).to_parquet(
        folder / "several.parquet", index=False
    )
    return folder


# A name with a comma would be two names.
SPOILED = [word if word.startswith("--") else ",".join(w + EVIL for w in word.split(",")) for word in ROLES]


@pytest.mark.long
def test_every_command_on_a_table_shows_names_and_obeys_none(evil, tmp_path):
    train, new, model, adapted = (evil / name for name in ("train.parquet", "new.parquet", "m.sfb", "a.sfb"))
    commands = (
        ("fit", train, *SPOILED, "-o", model),
        ("adapt", model, new, "-o", adapted, "--report", evil / "r.html"),
        ("predict", adapted, new, "-o", evil / "p.csv"),
        ("predict", adapted, new, "-o", "-"),
        ("explain", adapted, new, "--row", "1"),
        ("explain", adapted, new, "--row", "1", "--json"),
        ("check", train, new, *SPOILED),
        ("evaluate", train, *SPOILED),
        ("run", train, new, *SPOILED, "-o", evil / "p.csv", "--no-evaluate"),
        ("run", train, evil / "several.parquet", *SPOILED, "-o", evil / "p.csv", "--no-evaluate"),
        ("info", adapted),
        ("info", adapted, "--json"),
    )
    for arguments, (text, code) in zip(commands, on_a_terminal(tmp_path, *commands), strict=True):
        assert code == 0, text
        assert "1b]0;owned" in text, arguments
    page = (evil / "r.html").read_text(encoding="utf-8")
    assert r"x\[/]\x1b]0;owned" in page
    assert "\x1b" not in page
    assert "\u202e" not in page


@pytest.mark.long
def test_every_error_shows_names_and_obeys_none(tmp_path):
    (tmp_path / "evil.toml").write_text(f"{json.dumps(EVIL)} = 1\n")
    commands = (
        ("fit", EVIL, "--target", "a", "--domain", "b", "-o", "m.sfb"),
        ("explain", "m.sfb", "new.csv", EVIL),
        (EVIL,),
        ("fit", f"--{EVIL}"),
        ("check", "t.csv", "--config", "evil.toml"),
        ("predict", EVIL, "new.csv", "-o", "p.csv"),
        ("predict", "m.sfb", "new.csv", "-o", EVIL),
    )
    for arguments, (text, code) in zip(commands, on_a_terminal(tmp_path, *commands), strict=True):
        assert code == 2, text
        assert "error: " in text
        assert "1b]0;owned" in text, (arguments, text)


def test_a_warning_about_a_forged_model_is_a_note(tmp_path, forge):
    model = forge(lambda manifest: manifest["versions"].update({"scikit-learn": EVIL}))
    (tmp_path / "new.csv").write_text("a\n1\n")
    [(text, code)] = on_a_terminal(tmp_path, ("predict", model, "new.csv", "-o", "p.csv"))
    assert code == 2
    assert "note: The model was saved with scikit-learn x\\[/]\\x1b]0;owned" in text


@pytest.fixture
def forge(files, tmp_path):
    """A model file whose manifest lies."""
    from sfboost.persistence.archive import pack, unpack

    def write(lie):
        parts = unpack(files.model.read_bytes())
        manifest = json.loads(parts["manifest.json"])
        lie(manifest)
        path = tmp_path / "forged.sfb"
        path.write_bytes(pack({**parts, "manifest.json": json.dumps(manifest).encode()}))
        return path

    return write


def test_what_programs_read_is_written_out_on_a_terminal_alone(monkeypatch, capsys):
    from sfboost.cli.console import give

    give("\x1b[2J\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    give("\x1b[2J\n")
    assert capsys.readouterr().out == "\x1b[2J\n\\x1b[2J\n"
