"""What a few labels of the new domain are worth on real tables.

    python studies/study_labels.py --out labels.jsonl [--tables heart_disease] [--learner boosting] [--most 4]

Rows, changes and models are those of `sfboost_lab.experiments.shifts`. In each new domain some rows, drawn
without regard to their class, are given their labels, five times; all other rows are scored. Finished domains
are in the file and are not done again. Prints means over the domains of each table.
"""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd

from sfboost_lab.experiments.shifts import suite

SHARED = runpy.run_path(str(Path(__file__).with_name("shift_tables.py")))
line, study_tables = SHARED["line"], SHARED["study_tables"]

KINDS = ("as is", "all mirrored", "shares moved")
COUNTS, DRAWS = (0, 10, 20, 40), 5
#: A domain has at least so many rows for each label.
ROWS_FOR_EACH = 3


def measured(run):
    fitted, made = suite.fitted(run), []
    for kind, new in suite.changed(run, fitted):
        X, y = new.rows.matrix(), new.rows.y
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
    lines = [line(["table", *head]), line(["---"] * (len(head) + 1))]
    for (table, learner), part in rows.groupby(["table", "learner"], sort=False):
        cells = []
        for kind in KINDS:
            means = part[part["kind"] == kind].groupby(["labels", "new"])["accuracy"].mean()
            cells.append(" · ".join(f"{100 * means[count].mean():.1f}" for count in counts))
        lines.append(line([f"{table} ({part['new'].nunique()}), {learner}", *cells]))
    return lines


if __name__ == "__main__":
    study_tables(__doc__, measured, page)
