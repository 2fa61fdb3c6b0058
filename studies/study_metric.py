"""What is gained by saying which score counts: answers chosen by it, beside those chosen by Brier score.

    python studies/study_metric.py --out metric.jsonl [--tables heart_disease] [--learner boosting] [--most 4]

Rows, changes and models are those of `sfboost_lab.experiments.shifts`. Each metric has a model of its own,
`Settings(metric=...)`; its answer is scored by that metric, and so is the answer of a model without one.
Finished domains are in the file and are not done again. Prints means over the domains of each table.
"""

import runpy
from pathlib import Path

import pandas as pd
from sklearn.base import clone

from sfboost import Settings
from sfboost.adaptation.scores import LOSSES, METRIC_NAMES, POINTS
from sfboost.boosting import score_predictions
from sfboost_lab.experiments.shifts import suite

SHARED = runpy.run_path(str(Path(__file__).with_name("shift_tables.py")))
line, study_tables = SHARED["line"], SHARED["study_tables"]

METRICS = ("accuracy", "balanced_accuracy", "auroc", "log_loss")
HARD = ("strongest mirrored", "all mirrored", "strongest shuffled", "all shuffled")
#: Columns of the page → kinds of change.
SHOWN = {
    "as is": ("as is",),
    "mirrored and shuffled": HARD,
    "class means reversed": ("class means reversed",),
}


def measured(run):
    fitted, made = suite.fitted(run), []
    own = fitted.domains
    models = {None: fitted.model}
    for metric in METRICS:
        models[metric] = clone(fitted.model).set_params(settings=Settings(metric=metric))
        models[metric].fit(fitted.X, own.own.y, sample_domain=own.domain)
    wanted = {kind for kinds in SHOWN.values() for kind in kinds}
    for kind, new in suite.changed(run, fitted):
        X, y = new.rows.matrix(), new.rows.y
        if kind not in wanted:
            continue
        adapted = {metric: model.adapt(X) for metric, model in models.items()}
        for metric in METRICS:
            # Both decide alike: what differs is which answer was chosen.
            costs = models[metric]._costs()
            usual, chosen = (
                score_predictions(y, adapted[name].predict_proba(X), costs, metric)[metric]
                for name in (None, metric)
            )
            made.append(
                {
                    "kind": kind,
                    "metric": metric,
                    "usual": round(usual, 5),
                    "chosen": round(chosen, 5),
                    "same": adapted[metric].weights_ == adapted[None].weights_,
                }
            )
    return made


def page(records):
    """The table of docs/how-good.md: what is gained in the mean over tables, in the worst and in the best."""
    rows = pd.DataFrame(records)
    sign = rows["metric"].map(lambda metric: -1.0 if metric in LOSSES else 1.0)
    rows["gain"] = sign * (rows["chosen"] - rows["usual"])
    lines = [line(["chosen by", *SHOWN, "another answer"]), line(["---"] * (len(SHOWN) + 2))]
    for (learner, metric), part in rows.groupby(["learner", "metric"], sort=False):
        scale, form = (100.0, "+.1f") if metric in POINTS else (1.0, "+.3f")
        cells = []
        for kinds in SHOWN.values():
            gains = scale * part[part["kind"].isin(kinds)].groupby("table")["gain"].mean()
            cells.append(f"{gains.mean():{form}} ({gains.min():{form}} to {gains.max():{form}})")
        other = f"{100 * (~part['same']).mean():.0f} %"
        lines.append(line([f"{METRIC_NAMES[metric]}, {learner}", *cells, other]))
    return lines


if __name__ == "__main__":
    study_tables(__doc__, measured, page)
