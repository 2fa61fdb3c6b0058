"""`--stable auto` on a table: whole columns, told in order, on the page too; a refusal says how far off."""

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
    told = [line for line in done.stdout.splitlines() if line.startswith(("* ", "  "))]
    assert told[0].split()[:2] == ["*", "ward"]
    assert told[1].split()[0] == "rate"
    assert "stable: ward\n" in done.stdout


def test_the_page_shows_the_drift_of_each_column_by_domain(sfboost, table, tmp_path):
    outputs = ("-o", tmp_path / "p.csv", "--report", tmp_path / "r.html", "--no-evaluate")
    new = tmp_path / "new.csv"
    pd.read_csv(table).drop(columns="hospital").to_csv(new, index=False)
    sfboost("run", table, new, *ROLES, "--stable", "auto", *outputs)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Which columns are stable" in page
    assert "Drift of each column, by training domain" in page


def test_a_refusal_speaks_the_command_lines_language_and_says_how_far_off(sfboost, table, tmp_path):
    done = sfboost(
        *("fit", table, *ROLES, "--stable", "auto", "--unstable", "ward", "--no-evaluate"),
        *("-o", tmp_path / "m.sfb"),
        code=2,
    )
    assert "name them with --stable by knowledge" in done.stderr
    assert "stable_features" not in done.stderr
    assert "Drift of a column by itself, the least first (0.1 is tolerated): rate up to 0." in done.stderr
