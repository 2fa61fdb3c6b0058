"""What is gained by saying which score counts: answers chosen by it, beside those chosen by Brier score.

    python studies/study_metric.py --out metric.jsonl [--tables heart_disease] [--learner boosting] [--most 4]

Rows, kinds of change and models are those of `sfboost reproduce shifts`. Each metric has a model of its own,
`Settings(metric=...)`; its answer is scored by that metric, and so is the answer of a model without one.
Finished domains are in the file and are not done again. Prints means over the domains of each table.
"""

import pandas as pd
from sklearn.base import clone

from sfboost import Settings
from sfboost.adaptation.scores import LOSSES, METRIC_NAMES, POINTS
from sfboost.boosting import score_predictions
from sfboost.lab.experiments.shifts import suite
from sfboost.lab.experiments.shifts.study import line, study_tables

METRICS = ("accuracy", "balanced_accuracy", "auroc", "log_loss")
HARD = ("strongest mirrored", "all mirrored", "strongest shuffled", "all shuffled")
#: Columns of the page → kinds of change.
SHOWN = {
    "as is": ("as is",),
    "mirrored and shuffled": HARD,
    "class means reversed": ("class means reversed",),
}


def measured(run):
    fitted, made = suite._fit(run), []
    own = fitted.domains
    models = {None: fitted.model}
    for metric in METRICS:
        models[metric] = clone(fitted.model).set_params(settings=Settings(metric=metric))
        models[metric].fit(fitted.X, own.own.y, sample_domain=own.domain)
    wanted = {kind for kinds in SHOWN.values() for kind in kinds}
    for place, new in suite._places(run, fitted):
        kind, X, y = place.removeprefix("test-"), new.rows.matrix(), new.rows.y
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
    """The table of docs/how-good.md: gain by choosing so, and how often the answer is another one."""
    rows = pd.DataFrame(records)
    sign = rows["metric"].map(lambda metric: -1.0 if metric in LOSSES else 1.0)
    rows["gain"] = sign * (rows["chosen"] - rows["usual"])
    lines = [line(["table", "chosen by", *SHOWN]), line(["---"] * (len(SHOWN) + 2))]
    for (table, learner, metric), part in rows.groupby(["table", "learner", "metric"], sort=False):
        cells = []
        for kinds in SHOWN.values():
            here = part[part["kind"].isin(kinds)]
            gain, other = here["gain"].mean(), (~here["same"]).mean()
            told = f"{100 * gain:+.1f}" if metric in POINTS else f"{gain:+.3f}"
            cells.append(f"{told} ({100 * other:.0f} %)")
        lines.append(line([f"{table} ({part['new'].nunique()}), {learner}", METRIC_NAMES[metric], *cells]))
    return lines


if __name__ == "__main__":
    study_tables(__doc__, measured, page)
