"""What a few labels of the new domain are worth on real tables.

    python studies/study_labels.py --out labels.jsonl [--tables heart_disease] [--learner boosting] [--most 4]

Rows, kinds of change and models are those of `sfboost reproduce shifts`. In each new domain some rows, drawn
without regard to their class, are given their labels, five times; all other rows are scored. Finished domains
are in the file and are not done again. Prints means over the domains of each table.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from sfboost.lab.experiments.shifts import suite

KINDS = ("as is", "all mirrored", "shares moved")
COUNTS, DRAWS = (0, 10, 20, 40), 5
#: A domain has at least so many rows for each label.
ROWS_FOR_EACH = 3


def study(name, learner):
    """One list of records for each new domain."""
    for group in suite._in_turn(name, suite.TABLES[name], learner, 0, False, ("best",)):
        run = group.runs[0]
        if run.data.get("own") is None:
            yield run.data["new"], lambda run=run: measured(run)


def measured(run):
    fitted, made = suite._fit(run), []
    for place, new in suite._places(run, fitted):
        kind, X, y = place.removeprefix("test-"), new.rows.matrix(), new.rows.y
        if kind not in KINDS or len(y) < ROWS_FOR_EACH * COUNTS[-1]:
            continue
        for draw in range(DRAWS):
            order = np.random.default_rng(draw).permutation(len(y))
            rest = order[COUNTS[-1] :]
            for count in COUNTS:
                told = np.full(len(y), np.nan)
                told[order[:count]] = y[order[:count]]
                adapted = fitted.model.adapt(X, told if count else None)
                proba = adapted.predict_proba(X)[rest]
                wrong = proba - np.eye(proba.shape[1])[y[rest]]
                made.append(
                    {
                        "kind": kind,
                        "draw": draw,
                        "labels": count,
                        "decision": adapted.decision_,
                        "accuracy": round(float((proba.argmax(axis=1) == y[rest]).mean()), 5),
                        "brier": round(float((wrong**2).sum(axis=1).mean()) / 2, 6),
                    }
                )
    return made


def page(records):
    """The table of docs/answers.md."""
    rows = pd.DataFrame(records)
    counts = sorted(set(rows["labels"]))
    head = [f"{kind}: {', '.join(str(count) for count in counts)} labels" for kind in KINDS]
    lines = [_line(["table", *head]), _line(["---"] * (len(head) + 1))]
    for (table, learner), part in rows.groupby(["table", "learner"], sort=False):
        cells = []
        for kind in KINDS:
            means = part[part["kind"] == kind].groupby(["labels", "new"])["accuracy"].mean()
            cells.append(" · ".join(f"{100 * means[count].mean():.1f}" for count in counts))
        lines.append(_line([f"{table} ({part['new'].nunique()}), {learner}", *cells]))
    return lines


def _line(cells):
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", default=list(suite.TABLES))
    parser.add_argument("--learner", choices=["logistic", "boosting"], default="logistic")
    parser.add_argument("--most", type=int, default=None, help="New domains of each table; all by default.")
    parser.add_argument("--out", type=Path, required=True, help="Records, one line each; resumable.")
    told = parser.parse_args()
    known = [json.loads(line) for line in told.out.read_text().splitlines()] if told.out.exists() else []
    done = {(r["table"], r["learner"], r["new"]) for r in known}
    warnings.simplefilter("ignore")
    for table in told.tables:
        for new, measure in study(table, told.learner):
            if (table, told.learner, new) in done or (told.most is not None and new >= told.most):
                continue
            key = {"table": table, "learner": told.learner, "new": new}
            made = [key | record for record in measure()]
            with told.out.open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in made)
            known += made
            print(table, new, flush=True)
    print("", *page(known), sep="\n")


if __name__ == "__main__":
    main()
