"""The way from a table to predictions, as a person with a deadline takes it."""

import json
import re
import sys

import numpy as np
import pandas as pd
import pytest
from hospitals import ROLES, draw, reversed_hospital, training

from sfboost.cli.predictions import Predicting
from sfboost.cli.project import load_project
from sfboost.frames.reading import find, read
from sfboost.json_values import json_values

COMMAND = (sys.executable, "-c", "from sfboost.cli import main; main()")
COLUMNS = ["patient", "prediction", "decision", "answer_no", "answer_yes", "stable_no", "stable_yes"]


def test_the_three_steps_and_run_give_the_same_predictions(files, sfboost, tmp_path):
    sfboost("predict", files.adapted, files.new, "-o", tmp_path / "steps.parquet")
    sfboost("run", files.train, files.new, *ROLES, "-o", tmp_path / "run.csv", "--no-evaluate")
    steps, run = pd.read_parquet(tmp_path / "steps.parquet"), pd.read_csv(tmp_path / "run.csv")
    assert list(steps.columns) == list(run.columns) == COLUMNS
    assert (steps["prediction"] == run["prediction"]).all()
    np.testing.assert_allclose(steps[COLUMNS[3:]], run[COLUMNS[3:]], atol=1e-12)


def test_adapting_uses_the_reversed_feature_and_pooling_is_fooled(files, sfboost, tmp_path):
    told = sfboost.json("adapt", files.model, files.labelled, "-o", tmp_path / "a.sfb")
    accuracy = {method: scores["accuracy"] for method, scores in told["scores"].items()}
    assert told["decision"] == "adapted"
    assert told["reversed"] == ["heart_rate"]
    assert accuracy["answer"] > accuracy["stable"] + 0.05
    assert accuracy["pooled"] < accuracy["stable"]


def test_labels_in_the_new_table_never_change_what_is_learned(files, sfboost, tmp_path):
    wrong = reversed_hospital().assign(sick=lambda rows: rows["sick"].map({"yes": "no", "no": "yes"}))
    wrong.to_csv(tmp_path / "wrong.csv", index=False)
    for table in (files.new, files.labelled, tmp_path / "wrong.csv"):
        done = sfboost("adapt", files.model, table, "-o", tmp_path / "a.sfb")
        sfboost("predict", tmp_path / "a.sfb", files.new, "-o", tmp_path / f"{table.stem}.csv")
        assert ("used for scores alone" in done.stderr) == (table != files.new)
    texts = {(tmp_path / f"{name}.csv").read_text() for name in ("new", "labelled", "wrong")}
    assert len(texts) == 1


def test_predictions_carry_the_id_probabilities_and_the_decision(files, sfboost, tmp_path):
    sfboost("predict", files.adapted, files.new, "-o", tmp_path / "p.csv")
    rows = pd.read_csv(tmp_path / "p.csv")
    assert rows["patient"].tolist() == reversed_hospital()["patient"].tolist()
    for kind in ("answer", "stable"):
        np.testing.assert_allclose(rows[f"{kind}_no"] + rows[f"{kind}_yes"], 1.0)
    assert (rows["prediction"] == np.where(rows["answer_yes"] > rows["answer_no"], "yes", "no")).all()
    assert set(rows["decision"]) == {load_project(files.adapted).adapted.decision_}


def test_a_model_that_is_not_adapted_predicts_with_all_features_and_says_so(files, sfboost, tmp_path):
    done = sfboost("predict", files.model, files.new, "-o", tmp_path / "p.csv")
    rows = pd.read_csv(tmp_path / "p.csv")
    assert "not adapted" in done.stderr
    assert set(rows["decision"]) == {"not adapted"}
    assert (rows["answer_yes"] != rows["stable_yes"]).any()


def test_an_id_passes_through_as_it_was_written(files, sfboost, tmp_path):
    rows = reversed_hospital(60).assign(patient=[f"00{i}" for i in range(60)])
    rows.to_csv(tmp_path / "new.csv", index=False)
    sfboost("predict", files.adapted, tmp_path / "new.csv", "-o", tmp_path / "p.csv")
    assert pd.read_csv(tmp_path / "p.csv", dtype=str)["patient"].tolist() == rows["patient"].tolist()
    rows.drop(columns="patient").to_csv(tmp_path / "new.csv", index=False)
    sfboost("adapt", files.model, tmp_path / "new.csv", "-o", tmp_path / "a.sfb")  # adapting needs none
    done = sfboost("predict", files.adapted, tmp_path / "new.csv", "-o", tmp_path / "p.csv", code=2)
    assert "no column 'patient'" in done.stderr


def test_rows_are_numbered_where_there_is_no_id(files, sfboost, tmp_path):
    roles = [*ROLES[:-2], "--drop", "patient"]
    sfboost("run", files.train, files.new, *roles, "-o", tmp_path / "p.csv", "--no-evaluate")
    assert pd.read_csv(tmp_path / "p.csv")["row"].tolist() == list(range(1, 801))


def test_predictions_do_not_depend_on_how_the_table_is_cut(files):
    project, table = load_project(files.adapted), read(find(str(files.new)))
    parts = [
        pd.concat(
            [b.to_pandas() for b in Predicting(project)(iter(table.to_batches(size)))], ignore_index=True
        )
        for size in (7, 333, 800)
    ]
    for part in parts[1:]:
        pd.testing.assert_frame_equal(part, parts[0], rtol=1e-12)


def test_require_adapted_ends_with_three_where_the_stable_predictor_is_kept(files, sfboost, tmp_path):
    few = tmp_path / "few.csv"
    reversed_hospital(30).to_csv(few, index=False)
    arguments = ("adapt", files.model, few, "-o", tmp_path / "a.sfb")
    safe = (*arguments, "--answer", "safe")
    assert "kept stable" in sfboost(*safe).stdout
    sfboost(*safe, "--require-adapted", code=3)
    assert (tmp_path / "a.sfb").exists()  # the outcome is saved all the same


@pytest.mark.parametrize("heart", [0.8, -1.0])
def test_require_adapted_is_about_the_stable_predictor_alone(files, sfboost, tmp_path, heart):
    """All features as trained, where nothing changed, is an answer, and no refusal."""
    draw("west", 800, np.random.default_rng(1), heart).to_csv(tmp_path / "new.csv", index=False)
    arguments = ("adapt", files.model, tmp_path / "new.csv", "-o", tmp_path / "a.sfb", "--require-adapted")
    assert sfboost.json(*arguments)["decision"] == ("pooled" if heart > 0 else "adapted")


def test_rows_are_on_the_page_without_their_ids(files, sfboost, tmp_path):
    arguments = ("adapt", files.model, files.new, "-o", tmp_path / "a.sfb", "--report", tmp_path / "r.html")
    sfboost(*arguments)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "The surest of them" in page
    assert "west-" not in page
    assert f"sfboost adapt {files.model}" in page  # the command that made it
    sfboost(*arguments, "--no-rows")
    assert "No rows are shown" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_domain_of_the_table_can_play_the_new_one(files, sfboost, tmp_path):
    both = tmp_path / "all.csv"
    pd.concat([training(), reversed_hospital()]).to_csv(both, index=False)
    told = sfboost.json("run", both, "--hold-out", "west", *ROLES, "-o", tmp_path / "p.csv", "--no-evaluate")
    as_two = sfboost.json(
        "run", files.train, files.labelled, *ROLES, "-o", tmp_path / "q.csv", "--no-evaluate"
    )
    assert told["scores"] == as_two["scores"]
    assert (tmp_path / "p.csv").read_text() == (tmp_path / "q.csv").read_text()


def test_evaluate_is_run_with_each_domain_held_out(files, sfboost, tmp_path):
    """Nothing of the held-out domain, not even a median, reaches the others."""
    told = sfboost.json("evaluate", files.train, *ROLES)
    rows = {row["domain"]: row for row in told["domains"]}
    assert set(rows) == {"north", "south", "east"}
    held = sfboost.json(
        "run", files.train, "--hold-out", "south", *ROLES, "-o", tmp_path / "p.csv", "--no-evaluate"
    )
    for method in ("stable", "answer", "pooled"):
        assert rows["south"]["scores"][method]["accuracy"] == pytest.approx(
            held["scores"][method]["accuracy"]
        )
    answer, stable = (
        np.mean([row["scores"][method]["accuracy"] for row in rows.values()])
        for method in ("answer", "stable")
    )
    assert told["gain"] == pytest.approx(answer - stable)
    assert told["gain"] > 0.03


def test_a_domain_that_alone_makes_a_column_say_something_is_left_out_and_named(sfboost, tmp_path):
    rows = training(150).drop(columns="heart_rate")
    rows.loc[rows["hospital"] != "east", "ward"] = "A"
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows = {row["domain"]: row for row in sfboost.json("evaluate", tmp_path / "rows.csv", *ROLES)["domains"]}
    assert rows["east"]["decision"] == "skipped"
    assert "nothing to adapt" in rows["east"]["reason"]
    assert rows["north"]["decision"] != "skipped"


def test_check_says_of_each_feature_whether_its_meaning_changed(files, sfboost):
    told = sfboost.json("check", files.train, files.new, *ROLES)
    found = {feature["name"]: feature for feature in told["features"]}
    assert {name: feature["verdict"] for name, feature in found.items()} == {
        "heart_rate": "changed",
        "ward": "unchanged",
    }
    assert found["heart_rate"]["left"] < -0.5
    assert found["ward"]["left"] > 0.5
    assert all(own > 0.2 for own in found["heart_rate"]["own"].values())
    assert found["heart_rate"]["here"] < -0.2
    assert sfboost.json("check", files.train, *ROLES)["features"] == []
    done = sfboost("check", files.train, files.new, *ROLES)
    assert "f_S (the stable predictor's probabilities)" in done.stderr
    text = done.stdout
    remedies = [line for line in text.splitlines() if line.startswith("  → ")]
    assert remedies
    assert not any(symbol in remedy for remedy in remedies for symbol in ("X_S", "X_U", "f_S"))
    assert re.search(r"heart_rate  changed +left of what it said: -\d+ %, p < 0.001", text)
    assert "p = 0.000" not in text


def test_an_explanation_tells_what_is_missing_and_names_categories(files, sfboost, tmp_path):
    new = pd.read_csv(files.new).iloc[:2].assign(heart_rate=[None, 70.0])
    new.to_csv(tmp_path / "new.csv", index=False)
    said = [sfboost("explain", files.adapted, tmp_path / "new.csv", "--row", row).stdout for row in (1, 2)]
    assert "heart_rate = missing" in said[0]
    assert "heart_rate = 70" in said[1]
    assert sfboost.json("explain", files.adapted, tmp_path / "new.csv", "--row", 1)["missing"] == [
        "heart_rate"
    ]
    assert "baseline" in sfboost("explain", "--help").stdout


def test_an_explanation_sums_to_the_prediction(files, sfboost, tmp_path):
    told = sfboost.json("explain", files.adapted, files.new, "--row", 17)
    sfboost("predict", files.adapted, files.new, "-o", tmp_path / "p.csv")
    row = pd.read_csv(tmp_path / "p.csv").iloc[16]
    np.testing.assert_allclose(np.exp(told["log_probability"]), [row["answer_no"], row["answer_yes"]])
    assert {"age", "sex", "chol"} == set(told["stable_features"])
    terms = [*told["stable_features"].values(), *told["features"].values(), told["baseline"]]
    np.testing.assert_allclose(np.sum(terms, axis=0), told["log_probability"])
    assert sfboost.json("explain", files.adapted, files.new, "--id", "west-17") == told
    assert "heart_rate" in sfboost("explain", files.adapted, files.new, "--row", 17).stdout


def test_rows_to_learn_from_need_no_id(sfboost, tmp_path):
    training().drop(columns="patient").to_csv(tmp_path / "train.csv", index=False)
    new = reversed_hospital()
    new.to_csv(tmp_path / "new.csv", index=False)
    roles = (*ROLES[: ROLES.index("--id")], *ROLES[ROLES.index("--id") + 2 :], "--no-evaluate")
    run = ("run", tmp_path / "train.csv", tmp_path / "new.csv", *roles, "-o", tmp_path / "p.csv")
    told = sfboost.json(*run, "--id", "patient")
    assert any("has no column 'patient': the new rows need one." in remark for remark in told["remarks"])
    assert pd.read_csv(tmp_path / "p.csv")["patient"].tolist() == new["patient"].tolist()
    said = sfboost(*run, "--id", "patents", code=2)  # a slip of the pen is told before the work
    assert "new.csv has no column 'patents' (did you mean 'patient'?)" in " ".join(said.stderr.split())


def test_the_model_file_holds_no_training_row(files):
    content = files.model.read_bytes()
    rows = training()
    assert not any(patient.encode() in content for patient in rows["patient"][::50])
    facts = json.dumps(load_project(files.model).training.to_dict(), default=lambda v: json_values(vars(v)))
    # Heart rates have one decimal; the facts keep slopes and means of them, never a value.
    assert not any(f" {value}," in facts for value in rows["heart_rate"].unique()[:200])


def test_options_may_come_from_a_toml_file(files, sfboost, tmp_path):
    config = tmp_path / "sfboost.toml"
    config.write_text(
        'target = "sick"\ndomain = "hospital"\nstable = ["age", "sex", "chol"]\nid = "patient"\n'
        "evaluate = false\n[model]\ncalibration_bias = true\n"
    )
    told = sfboost.json("fit", files.train, "--config", config, "-o", tmp_path / "m.sfb")
    assert told["evaluation"] == []
    assert load_project(tmp_path / "m.sfb").model.calibration_bias
    stricter = sfboost.json(
        "fit", files.train, "--config", config, "--stable", "age", "-o", tmp_path / "m.sfb"
    )
    assert stricter["stable"] == ["age"]


@pytest.mark.parametrize(("learner", "members"), [("boosting", 1), ("auto", 2)])
def test_the_learner_of_all_columns_is_chosen_and_the_file_keeps_it(
    files, sfboost, tmp_path, learner, members
):
    model, adapted = tmp_path / "m.sfb", tmp_path / "a.sfb"
    sfboost("fit", files.train, *ROLES, "-o", model, "--learner", learner, "--no-evaluate")
    kept = load_project(model).model.pooled_
    assert (len(kept.members), type(kept.members[-1]).__name__) == (members, "HistGradientBoostingClassifier")
    done = sfboost("adapt", model, files.labelled, "-o", adapted)
    if learner == "auto":
        assert kept.mixture.weights.sum() > 0.5
    assert "heart_rate" in done.stderr + done.stdout
    sfboost("predict", adapted, files.new, "-o", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")["answer_yes"] > 0.5
    assert (found == (pd.read_csv(files.labelled)["sick"] == "yes")).mean() > 0.75
