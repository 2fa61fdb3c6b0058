"""AC and CE-DD: what the independence penalty (λ_C of Eq. 5.1) does for SFB (paper).

    python studies/study_independence.py --out results      # 100 seeds; a quarter of an hour on two cores

Trains SFB (paper) in turns as `sfboost-lab reproduce synthetic` does, with the same seeds, rows and λ_S, but
with λ_C = 0, and puts it beside the committed records with λ_C = 1. λ_S is chosen on the validation
domain for each seed. It can be stopped and goes on where it was.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from sfboost_lab.experiments.committed import committed_records
from sfboost_lab.experiments.engines import make_engine
from sfboost_lab.experiments.networks import blocks
from sfboost_lab.experiments.rules import VALIDATION_DOMAIN
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.sweep import sweep
from sfboost_lab.experiments.synthetic import ALL_STEPS, COLUMNS, DATASETS, NAME, TRAININGS, make_group
from sfboost_lab.experiments.tables import Row, make_table, paired_table

IN_TURNS = TRAININGS[0]
WEIGHTS = (0.0, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of records")
    args = parser.parse_args()
    training = replace(IN_TURNS, independence_weight=WEIGHTS[:1])
    groups = []
    for dataset in DATASETS:
        hypers = training.hypers(dataset, quick=False)
        for block in blocks(args.seeds, len(hypers)):
            models = [Run(dataset, training.trainer, seed, NAME, hyper=h) for seed in block for h in hypers]
            groups.append(make_group(models, [ALL_STEPS]))
    records = {**committed_records(NAME), **sweep(groups, args.out, make_engine()).records}
    records = {name: record for name, record in records.items() if record.run.seed < args.seeds}
    rows = [_row(weight, unadapted) for unadapted in (True, False) for weight in WEIGHTS]
    tables = [
        make_table("SFB (paper) in turns, always 20 steps of adaptation", rows, COLUMNS, records),
        paired_table("what it adds", {"not adapted": rows[:2], "adapted": rows[2:]}, COLUMNS, records),
    ]
    for table in tables:
        print(table.title)
        for row, cells in table.rows:
            found = [
                f"{name} {c.mean:5.1f} ± {c.standard_error:.1f}"
                for name, c in zip(table.columns, cells, strict=True)
            ]
            print(f"  {row.label:24}", "   ".join(found))
    print("adapted below 85, share of seeds")
    for row, cells in tables[0].rows[2:]:
        shares = [
            f"{name} {np.mean(np.less(c.values, 85)):.2f}"
            for name, c in zip(tables[0].columns, cells, strict=True)
        ]
        print(f"  {row.label:24}", "   ".join(shares))


def _row(weight: float, unadapted: bool) -> Row:
    return Row(
        f"λ_C = {weight:g}{', not adapted' * unadapted}",
        IN_TURNS.trainer,
        ALL_STEPS[0],
        VALIDATION_DOMAIN,
        unadapted=unadapted,
        test_access="none" if unadapted else "unlabelled",
        hyper={"split": "alternating", "independence_weight": weight},
        adapter_hyper={"steps": 20},
    )


if __name__ == "__main__":
    main()
