"""`sfboost monitor` on files: lines of history, exit codes, the page, late labels."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest


def table(rng, n_rows, turned=False):
    y = rng.integers(0, 2, n_rows)
    stable = 1.2 * y[:, None] + rng.normal(size=(n_rows, 2))
    unstable = 1.5 * (1 - y if turned else y)[:, None] + rng.normal(size=(n_rows, 2))
    frame = pd.DataFrame(np.hstack([stable, unstable]), columns=["age", "bmi", "ward", "<b>lab"])
    return frame.assign(sick=np.where(y, "yes", "no"))


@pytest.fixture
def months(sfboost, tmp_path):
    rng = np.random.default_rng(0)
    sites = [table(rng, 300).assign(site=f"s{k}") for k in range(4)]
    pd.concat(sites).to_csv(tmp_path / "train.csv", index=False)
    for name, turned in (("april", False), ("may", True)):
        late = table(rng, 300, turned)
        late.to_csv(tmp_path / f"{name}-labels.csv", index=False)
        late.drop(columns="sick").to_csv(tmp_path / f"{name}.csv", index=False)
    columns = ["--target", "sick", "--domain", "site", "--stable", "age,bmi", "--learner", "linear"]
    model = str(tmp_path / "model.sfb")
    sfboost("fit", str(tmp_path / "train.csv"), *columns, "--no-evaluate", "-o", model)
    return tmp_path


def test_two_months_an_alarm_a_page_and_labels_that_come_later(sfboost, months):
    model, history, page = (str(months / name) for name in ("model.sfb", "history.jsonl", "months.html"))
    kept = ["--history", history]
    first = sfboost("monitor", model, str(months / "april.csv"), *kept, "--alarm", "--json")
    said = json.loads(first.stdout)
    assert (said["name"], said["rows"], said["decision"], said["alarm"]) == (
        "april.csv",
        300,
        "pooled",
        False,
    )
    may = [str(months / "may.csv"), *kept, "--alarm", "--report", page]
    second = sfboost("monitor", model, *may, code=4)
    assert "ALARM" in second.stdout
    lines = [json.loads(line) for line in (months / "history.jsonl").read_text().splitlines()]
    assert [line["code"] for line in lines] == ["no_shift", "unstable_shifted"]
    html = (months / "months.html").read_text()
    assert "&lt;b&gt;lab" in html
    assert "<b>lab" not in html
    assert "2 batches" in html
    late = sfboost("monitor", model, str(months / "may-labels.csv"), *kept, "--labels")
    assert "may.csv, 300 labels: accuracy answer" in late.stdout
    assert len((months / "history.jsonl").read_text().splitlines()) == 2


def test_rows_that_nobody_monitored_and_rows_without_labels_are_refused(sfboost, months):
    model, kept = str(months / "model.sfb"), ["--history", str(months / "history.jsonl"), "--labels"]
    none = sfboost("monitor", model, str(months / "may-labels.csv"), *kept, code=2)
    assert "holds no batch" in none.stderr
    sfboost("monitor", model, str(months / "april.csv"), *kept[:2])
    other = sfboost("monitor", model, str(months / "may-labels.csv"), *kept, code=2)
    assert "No batch of this history has these 300 rows" in other.stderr
    bare = sfboost("monitor", model, str(months / "may.csv"), *kept, code=2)
    assert "has no column 'sick'" in bare.stderr


def test_a_month_again_replaces_its_line_and_is_the_one_that_is_told(sfboost, months):
    model, kept = str(months / "model.sfb"), ["--history", str(months / "history.jsonl")]
    for name in ("april", "may"):
        sfboost("monitor", model, str(months / f"{name}.csv"), *kept)
    again = sfboost("monitor", model, str(months / "april.csv"), *kept, "--name", "spring")
    assert "pooled: spring, 300 rows" in again.stdout
    assert "The history had these rows as april.csv: that line is replaced." in again.stderr
    lines = [json.loads(line) for line in (months / "history.jsonl").read_text().splitlines()]
    assert [line["name"] for line in lines] == ["spring", "may.csv"]
