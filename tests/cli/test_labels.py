"""Labels of some rows of a new table, and costs of wrong decisions: what they change, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hospitals import ROLES, draw, reversed_hospital

from sfboost.cli.options import read_costs


def some_labels(table, target, n_known, seed=0):
    """The label of some rows, drawn without regard to it; empty elsewhere."""
    known = np.random.default_rng(seed).permutation(len(table))[:n_known]
    return table[target].where(np.isin(np.arange(len(table)), known))


@pytest.fixture
def partly(tmp_path):
    """The new hospital: forty labels in `seen`, and the target for the scores."""
    table = reversed_hospital()
    table["seen"] = some_labels(table, "sick", 40)
    table.to_csv(tmp_path / "partly.csv", index=False)
    return tmp_path / "partly.csv"


def test_labels_are_used_and_not_scored_again(sfboost, files, partly, tmp_path):
    told = sfboost.json("adapt", files.model, partly, "--labels", "seen", "-o", tmp_path / "a.sfb")
    assert "40 of 800 rows have a label in 'seen': these are used to adapt." in told["remarks"]
    page = tmp_path / "page.html"
    said = sfboost(
        "adapt", files.model, partly, "--labels", "seen", "-o", tmp_path / "b.sfb", "--report", page
    )
    assert "40 labels of the target domain were used to adapt." in page.read_text(encoding="utf-8")
    assert "on the 760 labels that were given" in said.output


def test_what_is_to_be_expected_is_told_where_nothing_shifted_and_labels_are_missing(
    sfboost, files, tmp_path
):
    table = draw("west", 800, np.random.default_rng(1), 0.8)
    table.to_csv(tmp_path / "same.csv", index=False)
    reversed_hospital().to_csv(tmp_path / "reversed.csv", index=False)

    def told(name, *labels):
        return sfboost("adapt", files.model, tmp_path / name, *labels, "-o", tmp_path / "a.sfb").stdout

    assert "estimated accuracy of the answer: " in told("same.csv")
    assert "estimated" not in told("same.csv", "--labels", "sick")  # every row is labelled
    assert "estimated" not in told("reversed.csv")


def test_the_command_adapts_as_python_does_with_gaps(sfboost, files, partly, tmp_path):
    from sfboost import load

    sfboost("adapt", files.model, partly, "--labels", "seen", "-o", tmp_path / "a.sfb")
    sfboost("predict", tmp_path / "a.sfb", partly, "-o", tmp_path / "p.csv")
    table = pd.read_csv(partly)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the command tells what is missing as remarks
        by_hand = load(files.model).adapt(table, table["seen"])
        wanted = by_hand.predict_proba(table)[:, 1]
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv")["answer_yes"], wanted, atol=1e-9)


def test_the_target_itself_may_have_gaps(sfboost, files, partly, tmp_path):
    table = pd.read_csv(partly).drop(columns="sick").rename(columns={"seen": "sick"})
    table.to_csv(tmp_path / "gaps.csv", index=False)
    told = sfboost.json(
        *("run", files.train, tmp_path / "gaps.csv", *ROLES, "--labels", "sick", "--no-evaluate"),
        *("-o", tmp_path / "p.csv"),
    )
    assert told["scores"] is None
    assert not any("never to adapt" in remark for remark in told["remarks"])


@pytest.mark.parametrize(
    ("column", "cells", "sentence"),
    [
        ("seen", "", "is empty: fill in the label of some rows, or leave --labels out"),
        ("seen", "perhaps", "holds labels that training never saw (perhaps)"),
        ("ward", None, "which is a feature"),
        ("scen", None, "did you mean 'seen'"),
    ],
)
def test_labels_that_are_none_are_told_in_a_sentence(
    sfboost, files, partly, tmp_path, column, cells, sentence
):
    table = pd.read_csv(partly)
    if cells is not None:
        table["seen"] = cells
    table.to_csv(tmp_path / "other.csv", index=False)
    done = sfboost(
        "adapt", files.model, tmp_path / "other.csv", "--labels", column, "-o", tmp_path / "a.sfb", code=2
    )
    assert sentence in " ".join(done.output.split())
    assert not (tmp_path / "a.sfb").exists()


def test_costs_move_the_decision_and_not_the_probabilities(sfboost, files, tmp_path):
    for name, asked in {"plain": (), "dear": ("--costs", "yes>no=9")}.items():
        sfboost("predict", files.adapted, files.new, *asked, "-o", tmp_path / f"{name}.csv")
    plain, dear = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("plain", "dear"))
    pd.testing.assert_frame_equal(plain.drop(columns="prediction"), dear.drop(columns="prediction"))
    assert (dear["prediction"] == np.where(dear["answer_yes"] > 0.1, "yes", "no")).all()
    assert (plain["prediction"] != dear["prediction"]).any()


def test_costs_of_the_fit_are_remembered(sfboost, files, tmp_path):
    fit = ("fit", files.train, *ROLES, "--no-evaluate", "--costs", "yes>no=9", "-o", tmp_path / "m.sfb")
    sfboost(*fit)
    assert sfboost.json("info", tmp_path / "m.sfb")["costs"] == {"no>yes": 1.0, "yes>no": 9.0}
    sfboost("adapt", tmp_path / "m.sfb", files.new, "-o", tmp_path / "a.sfb")
    sfboost("predict", tmp_path / "a.sfb", files.new, "-o", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")
    assert (predicted["prediction"] == np.where(predicted["answer_yes"] > 0.1, "yes", "no")).all()


@pytest.mark.long
def test_source_domains_are_compared_by_what_is_asked_for(sfboost, files):
    told = sfboost.json("evaluate", files.train, *ROLES, "--costs", "yes>no=9")
    assert told["metric"] == "cost"
    costs = [{name: scores["cost"] for name, scores in row["scores"].items()} for row in told["domains"]]
    assert told["gain"] == pytest.approx(np.mean([one["stable"] - one["answer"] for one in costs]))
    said = sfboost("evaluate", files.train, *ROLES, "--metric", "balanced_accuracy")
    assert said.stdout.startswith("balanced  ")
    assert "changes balanced accuracy by" in said.output
    done = sfboost("evaluate", files.train, *ROLES, "--metric", "f1", code=2)
    assert "use one of accuracy" in " ".join(done.output.split())


@pytest.mark.parametrize(
    "classes",
    [("no", "yes"), ("a", "a=b"), ("a,b>c=1", ">=,")],
    ids=" ".join,
)
def test_costs_are_read_whatever_signs_the_classes_hold(classes):
    first, second = classes
    text = f"{first}>{second}=3, {second} > {first} = 0.5,"
    assert read_costs(text, classes).tolist() == [[0.0, 3.0], [0.5, 0.0]]


@pytest.mark.parametrize("costs", ["yes=9", "yes>maybe=9", "yes>yes=1", "yes>no=-1", "yes>no=much"])
def test_costs_that_are_none_are_told_in_a_sentence(sfboost, files, tmp_path, costs):
    done = sfboost("predict", files.adapted, files.new, "--costs", costs, "-o", tmp_path / "p.csv", code=2)
    assert "write for example 'yes>no=10'" in " ".join(done.output.split())
