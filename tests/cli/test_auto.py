"""`--stable auto` and `propose` on a table: whole columns, in order of their drift, on the page too."""

import json
import re

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng, parts = np.random.default_rng(0), []
    for name, turn in (("north", 1), ("south", -1)):
        y = rng.integers(0, 2, 1500)
        ward = np.where(rng.random(1500) < 0.7, y, rng.integers(0, 3, 1500))
        parts.append(
            pd.DataFrame(
                {
                    "sick": np.where(y, "yes", "no"),
                    "hospital": name,
                    "ward": np.array(["p", "q", "r"])[ward],
                    "rate": turn * y + rng.normal(size=1500),
                }
            )
        )
    path = tmp_path_factory.mktemp("auto") / "train.csv"
    pd.concat(parts).to_csv(path, index=False)
    return path


ROLES = ("--target", "sick", "--domain", "hospital")


def test_a_category_is_chosen_as_a_whole_and_the_drifts_are_told_in_order(sfboost, table, tmp_path):
    done = sfboost("fit", table, *ROLES, "--stable", "auto", "--no-evaluate", "-o", tmp_path / "m.sfb")
    _, first, second = [line for line in done.stdout.splitlines() if line.startswith(("* ", "  "))]
    assert first.split()[:2] == ["*", "ward"]
    assert second.split()[0] == "rate"
    assert "stable: ward\n" in done.stdout


def test_the_page_shows_the_drift_of_each_column_by_domain(sfboost, table, tmp_path):
    outputs = ("-o", tmp_path / "p.csv", "--report", tmp_path / "r.html", "--no-evaluate")
    new = tmp_path / "new.csv"
    pd.read_csv(table).drop(columns="hospital").to_csv(new, index=False)
    sfboost("run", table, new, *ROLES, "--stable", "auto", *outputs)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Which columns are stable" in page
    assert "Drift of each column, by source domain" in page


@pytest.mark.parametrize("names", [(), ("--stable", "auto", "--unstable", "ward")])
def test_where_nothing_is_shown_stable_all_features_answer_and_the_columns_are_ranked(
    sfboost, table, tmp_path, names
):
    few = pd.read_csv(table).groupby("hospital").head(150)
    few.to_csv(tmp_path / "few.csv", index=False)
    few.drop(columns="hospital").to_csv(tmp_path / "new.csv", index=False)
    outputs = ("-o", tmp_path / "p.csv", "--report", tmp_path / "r.html", "--answer", "safe")
    done = sfboost("run", tmp_path / "few.csv", tmp_path / "new.csv", *ROLES, *names, *outputs, "--json")
    told = json.loads(done.stdout)
    assert told["decision"] == "pooled"
    assert [one["selected"] for one in told["proposal"]] == [False] * len(told["proposal"])
    assert "No column is shown to be stable" in done.stderr
    assert "No column is shown to drift little" in (tmp_path / "r.html").read_text(encoding="utf-8")
    for command in ("evaluate", "check"):
        done = sfboost(command, tmp_path / "few.csv", *ROLES, *names)
        assert "No column is shown to be stable" in done.stderr
    # What adapts from a file answers alike.
    model, adapted = tmp_path / "m.sfb", tmp_path / "a.sfb"
    sfboost("fit", tmp_path / "few.csv", *ROLES, *names, "-o", model)
    again = sfboost.json("adapt", model, tmp_path / "new.csv", "-o", adapted)
    assert (again["decision"], again["reason"]) == (told["decision"], told["reason"])


def test_a_shift_that_no_stable_column_can_place_is_told_and_nobody_is_blamed(sfboost, table, tmp_path):
    few = pd.read_csv(table).groupby("hospital").head(150)
    few.to_csv(tmp_path / "few.csv", index=False)
    new = few[few["hospital"] == "north"].assign(rate=lambda rows: -3.0 * rows["rate"], hospital="west")
    new.to_csv(tmp_path / "new.csv", index=False)
    told = sfboost.json("run", tmp_path / "few.csv", tmp_path / "new.csv", *ROLES, "-o", tmp_path / "p.csv")
    assert (told["decision"], told["estimated"]) == ("pooled", None)
    assert "or seen where there is none: no column is shown to be stable" in told["reason"]
    assert told["headline"]["sentence"].endswith("features shifted here, and the rows cannot say which.")


def test_a_proposal_ranks_columns_and_says_what_each_is_worth(sfboost, table):
    told = sfboost.json("propose", table, *ROLES)
    assert told["status"] == "selected"
    ward, rate = told["proposal"]
    assert (ward["name"], ward["selected"], rate["name"], rate["selected"]) == ("ward", True, "rate", False)
    assert ward["drift"] < 0.1 < rate["drift"]
    assert ward["cost"] > 0.1 > rate["cost"]  # the rate says the opposite in the other hospital
    text = sfboost("propose", table, *ROLES).stdout
    assert re.search(r"^\* ward +0\.\d+ +0\.\d+ +\+\d+\.\d ± \d+\.\d points", text, re.MULTILINE)
