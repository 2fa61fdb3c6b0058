"""A mistake in the TOML file is one sentence that names it."""

import pytest
from hospitals import reversed_hospital

import sfboost as library

TEXTS = {
    'tarjet = "sick"\n': "did you mean 'target'",
    "[model]\ncolour = 1\n": "which is no setting",
    "target = \n": "is no TOML file",
    "drop = [[]]\n": "drop = [[]]: it is to be one value, or a list of names",
    "target = 2024-01-01\n": "it is to be one value",
    "[target]\nname = 1\n": "target = {'name': 1}: it is to be one value",
    "model = [3]\n": "model = [3]: settings of the model stand under the line [model]",
    "[model]\ncv = [1, 2]\n": "cv = [1, 2]: it is to be one value",
    "[model]\ncv = 1\n": "cv",
    '[model]\nrounds = "many"\n': "rounds=many makes no sense",
    '[model]\nstandardize = "perhaps"\n': "standardize",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_mistake_in_the_toml_file_is_named(files, sfboost, tmp_path, text):
    (tmp_path / "c.toml").write_text(text)
    roles = ("--target", "sick", "--domain", "hospital", "--stable", "age,chol", "--no-evaluate")
    fit = ("fit", files.train, *roles, "--id", "patient", "--config", tmp_path / "c.toml")
    done = sfboost(*fit, "-o", tmp_path / "m.sfb", code=2)
    assert TEXTS[text] in " ".join(done.stderr.replace("│", " ").split())
    assert not (tmp_path / "m.sfb").exists()


def test_the_toml_file_says_what_counts(files, sfboost, tmp_path):
    (tmp_path / "c.toml").write_text('metric = "auroc"\ncosts = "yes>no=3"\n')
    roles = ("--target", "sick", "--domain", "hospital", "--stable", "age,chol", "--id", "patient")
    fit = ("fit", files.train, *roles, "--no-evaluate", "--config", tmp_path / "c.toml")
    sfboost(*fit, "-o", tmp_path / "m.sfb")
    settings = library.load(tmp_path / "m.sfb").settings
    assert settings.metric == "auroc"
    assert len(settings.costs) == 2


@pytest.mark.parametrize(("answer", "code"), [("safe", 3), ("brave", 2)])
def test_the_toml_file_says_which_answer(files, sfboost, tmp_path, answer, code):
    reversed_hospital(30).to_csv(tmp_path / "few.csv", index=False)
    (tmp_path / "c.toml").write_text(f'answer = "{answer}"\n')
    adapt = ("adapt", files.model, tmp_path / "few.csv", "-o", tmp_path / "a.sfb", "--require-adapted")
    done = sfboost(*adapt, "--config", tmp_path / "c.toml", code=code)
    assert code != 2 or "'brave' is not one of" in done.stderr


def test_a_folder_and_bytes_that_are_no_text_are_no_toml(files, sfboost, tmp_path):
    (tmp_path / "c.toml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path, tmp_path / "c.toml"):
        done = sfboost("fit", files.train, "--config", path, "-o", tmp_path / "m.sfb", code=2)
        assert "is no TOML file" in " ".join(done.stderr.replace("│", " ").split())
