"""How far off scores are that no label was needed for, and how often prediction sets hold the truth.

    python studies/study_performance.py --out scores.jsonl [--tables heart_disease] [--most 4] [--no-sets]

Rows, changes and models are those of `sfboost_lab.experiments.shifts` (logistic learner, all own domains).
For the stable, the pooled and the chosen answer in every new domain, as it is and after each kind of change:
the truth, and what is estimated without labels: by confidence-based estimation (CBPE), which takes each
answer's own probabilities at their word, and by `performance_without_labels` in its two ways, labels from the
answer that was chosen (own domains give the interval) and labels from f_S alone (the interval allows for the
leak; no figure where the rows contradict the assumptions). Sets are calibrated on the own domains, which
takes a fit for each: `--no-sets` leaves them out. Finished domains are in the file and are not done again.
Labels of the new domain are used for the truth alone.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from sfboost.boosting import performance_without_labels, score_predictions
from sfboost.diagnostics import Performance, confidence_based
from sfboost_lab.experiments.shifts import suite

SCORES = ("accuracy", "balanced_accuracy", "auroc", "log_loss")
COVERAGE = 0.9


def new_domains(table):
    """The run of each new domain, with all own domains."""
    return suite.in_turn(table, suite.TABLES[table], "logistic")


def measured(run, sets):
    """One record for each kind of change and answer."""
    fitted = suite.fitted(run)
    model, made = fitted.model, []
    sets = sets and len(np.unique(fitted.domains.domain)) > 1
    if sets:
        model.calibrate_sets(fitted.X, fitted.domains.own.y, fitted.domains.domain)
    for kind, new in suite.changed(run, fitted):
        X, y = new.rows.matrix(), new.rows.y
        adapted = model.adapt(X)
        proba = {"stable": model.predict_proba(X), "answer": adapted.predict_proba(X)}
        if model.pooled_ is not None:
            proba["pooled"] = np.exp(model.pooled_.log_proba(*model.pooled_.numbers(X)))
        found = performance_without_labels(adapted, X, labels_from="stable")
        change, by_answer = adapted.change_, {}
        if change is not None:  # with a single own domain nobody knows what is usual
            by_answer = performance_without_labels(adapted, X, labels_from="answer")
        held = {}
        if sets:
            inside = adapted.predict_set(X, COVERAGE)
            covered = float(inside[np.arange(len(y)), y].mean())
            held = {"covered": covered, "size": float(inside.sum(axis=1).mean())}
        for answer, said in proba.items():
            truth, cbpe = score_predictions(y, said), confidence_based(said)
            ours, best = found[answer], by_answer.get(answer, Performance({}, {}, {}, 0.0, 0.9))
            made.append(
                {"kind": kind, "answer": answer, "rows": len(y)}
                | {"withheld": ours.withheld, "verdict": "" if change is None else change.verdict}
                | {"p": None if change is None else change.p_value}
                | {"decision": adapted.decision_}
                | {f"true_{score}": truth[score] for score in SCORES}
                | {f"cbpe_{score}": cbpe[score] for score in SCORES}
                | {f"ours_{score}": ours.value.get(score) for score in SCORES}
                | {f"low_{score}": ours.lower.get(score) for score in SCORES}
                | {f"high_{score}": ours.upper.get(score) for score in SCORES}
                | {f"best_{score}": best.value.get(score) for score in SCORES}
                | {f"best_low_{score}": best.lower.get(score) for score in SCORES}
                | {f"best_high_{score}": best.upper.get(score) for score in SCORES}
                | (held if answer == "answer" else {})
            )
    return made


def show(records):
    """Mean absolute errors by answer, as is and changed, domains counting within their tables."""
    rows = pd.DataFrame(records)
    rows["state"] = np.where(rows["kind"] == "as is", "as is", "changed")
    for score in SCORES:
        unit = 1.0 if score in ("log_loss", "auroc") else 100.0
        true = rows[f"true_{score}"].astype(float)
        rows["cbpe"] = unit * (rows[f"cbpe_{score}"] - true).abs()
        shown = ["cbpe"]
        for way, prefix in (("by answer", "best_"), ("by f_S", "")):
            value = rows[f"{'best' if prefix else 'ours'}_{score}"].astype(float)
            low, high = (rows[f"{prefix}{end}_{score}"].astype(float) for end in ("low", "high"))
            rows[way] = unit * (value - true).abs()
            rows[f"{way}: none %"] = 100.0 * value.isna()
            rows[f"{way}: inside %"] = (100.0 * ((true >= low) & (true <= high))).where(value.notna())
            rows[f"{way}: width"] = unit * (high - low)
            shown += [way, *(f"{way}: {what}" for what in ("none %", "inside %", "width"))]
        by_table = rows.groupby(["answer", "state", "table"])[shown].mean()
        print(f"\nmean absolute error of {score}, tables counting the same")
        print(by_table.groupby(["answer", "state"]).mean().round(3 if unit == 1.0 else 1).to_string())
    if "covered" in rows:
        kept = rows[rows["covered"].notna()]
        shown = kept.groupby(["table", "state"])[["covered", "size"]].mean()
        shown["domains covered %"] = kept.groupby(["table", "state"])["covered"].apply(
            lambda covered: 100.0 * (covered >= COVERAGE).mean()
        )
        print(f"\nprediction sets, {100 * COVERAGE:.0f} % asked for\n{shown.round(3).to_string()}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=list(suite.TABLES), default=list(suite.TABLES))
    parser.add_argument("--sets", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--most", type=int, default=100, help="New domains of each table, at most.")
    parser.add_argument("--out", type=Path, required=True, help="Records, one line each; resumable.")
    told = parser.parse_args()
    known = [json.loads(line) for line in told.out.read_text().splitlines()] if told.out.exists() else []
    done = {(record["table"], record["new"]) for record in known}
    warnings.simplefilter("ignore")
    for table in told.tables:
        for run in new_domains(table)[: told.most]:
            key = {"table": table, "new": run.data["new"]}
            if tuple(key.values()) in done:
                continue
            made = [key | record for record in measured(run, told.sets)]
            with told.out.open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in made)
            known += made
            print(table, run.data["new"], flush=True)
    show(known)


if __name__ == "__main__":
    main()
