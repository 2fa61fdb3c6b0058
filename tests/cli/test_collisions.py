"""No command destroys a file that it reads, or one that it has just written, under whatever name."""

import os

import pytest
from hospitals import ROLES, reversed_hospital, training

from sfboost.cli.inputs import refuse_collisions


@pytest.fixture
def folder(files, tmp_path, monkeypatch):
    """A folder with a table of each kind, a model, and other names for them."""
    monkeypatch.chdir(tmp_path)
    training(60).to_csv("train.csv", index=False)
    reversed_hospital(60).to_csv("new.csv", index=False)
    for name in ("model", "adapted"):
        (tmp_path / f"{name}.sfb").write_bytes(getattr(files, name).read_bytes())
    (tmp_path / "c.toml").write_text("quiet = false\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.csv").symlink_to("train.csv")
    (tmp_path / "dangling.html").symlink_to("p.csv")
    os.link("new.csv", "twin.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "train.csv", "new.csv", "-o", "p.csv", "--report", "p.csv"), "--report and -o"),
        (("run", "train.csv", "new.csv", "-o", "p.csv", "--report", "dangling.html"), "--report and -o"),
        (("run", "train.csv", "new.csv", "-o", "p.csv", "--report", "link.csv"), "--report and TRAIN"),
        (("run", "train.csv", "new.csv", "-o", "p.csv", "--report", "{cwd}/new.csv"), "--report and NEW"),
        (("run", "train.csv", "new.csv", "-o", "./train.csv"), "-o and TRAIN"),
        (("run", "train.csv", "new.csv", "-o", "twin.csv"), "-o and NEW"),
        (
            ("run", "train.csv", "new.csv", "-o", "p.csv", "--config", "c.toml", "--report", "c.toml"),
            "--report and --config",
        ),
        (("adapt", "model.sfb", "new.csv", "-o", "a.sfb", "--report", "model.sfb"), "--report and MODEL"),
        (("adapt", "model.sfb", "new.csv", "-o", "sub/../model.sfb"), "-o and MODEL"),
        (("predict", "adapted.sfb", "new.csv", "-o", "new.csv"), "-o and NEW"),
        (("fit", "train.csv", "--config", "c.toml", "-o", "c.toml"), "-o and --config"),
    ],
)
def test_a_file_that_would_be_destroyed_is_named_and_stays(folder, sfboost, arguments, sentence):
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    roles = ROLES if arguments[0] in ("run", "fit") else ()
    done = sfboost(*(part.format(cwd=folder) for part in arguments), *roles, code=2)
    assert f"{sentence} are the same file" in done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_pipes_and_devices_may_be_named_twice():
    refuse_collisions({"TRAIN": "-", "NEW": "/dev/null"}, {"-o": "-", "--report": "/dev/null"})


@pytest.mark.parametrize("id", ["prediction", "decision", "answer_yes", "stable_no"])
def test_an_id_with_the_name_of_a_column_of_the_predictions_is_refused(sfboost, tmp_path, id):
    rows, new = training(60).rename(columns={"patient": id}), reversed_hospital(60)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    new.rename(columns={"patient": id}).to_csv(tmp_path / "new.csv", index=False)
    roles = (*ROLES[:-1], id, "--no-evaluate", "-o")
    for command, out in (("fit", "m.sfb"), ("run", "p.csv")):
        tables = [tmp_path / "rows.csv", *([tmp_path / "new.csv"] if command == "run" else [])]
        done = sfboost(command, *tables, *roles, tmp_path / out, code=2)
        assert f"The id '{id}' is also the name of a column of the predictions" in done.stderr
        assert not (tmp_path / out).exists()
