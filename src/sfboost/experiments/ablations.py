"""ColoredMNIST: what bias correction, calibration and rounds each do for SFB, with the paper's Adam head."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfboost.experiments.cmnist import ORACLE_CHOICE, PAPER
from sfboost.experiments.colored import (
    DATASET,
    PAPER_ADAPTER,
    PAPER_HEAD,
    PROTOCOL,
    SHORT_IRM,
    STEADY_IRM,
    UNSTABLE,
    adapted,
    group,
    models,
    parts,
)
from sfboost.experiments.experiment import Experiment
from sfboost.experiments.figures import draw_dots
from sfboost.experiments.paper import paper_table
from sfboost.experiments.record import Records
from sfboost.experiments.run import Run
from sfboost.experiments.tables import Column, Row, Table, make_table, paired_table
from sfboost.experiments.two_stage import beside
from sfboost.experiments.work import Group

COLUMNS = (Column("0.1", DATASET, "test-0.1"),)
#: Title → f_S of the paper's training (None for ours), and steps of the head. With the published steps
#: held-out rows hardly tell 15 of them from 20.
FEATURES: dict[str, tuple[dict[str, Any] | None, int]] = {
    "the paper's features, short schedule": (SHORT_IRM, PAPER_HEAD["steps"]),
    "the paper's features, published steps": (STEADY_IRM, PAPER_HEAD["steps"]),
    "the paper's features, published steps; 15 of the head": (STEADY_IRM, 15),
    "our features": (None, PAPER_HEAD["steps"]),
}

#: Row of the paper → what is on.
VARIANTS: dict[str, dict[str, Any]] = {
    "SFB": parts(correct=False, stable=False),
    "+BC": parts(stable=False),
    "+CS": parts(correct=False),
    "+CU": parts(correct=False, stable=False, unstable=True),
    "+BC+CS+CU": parts(unstable=True),
    **{f"+BC+CS, {n} round{'s' * (n > 1)}": parts(n) for n in range(1, 6)},
}

#: What is compared, seed by seed: without and with a part.
STEPS = {
    "bias correction alone": ("SFB", "+BC"),
    "calibration alone": ("SFB", "+CS"),
    "calibration on top of bias correction": ("+BC", "+BC+CS, 1 round"),
    "3 rounds instead of 1": ("+BC+CS, 1 round", "+BC+CS, 3 rounds"),
    "5 rounds instead of 1": ("+BC+CS, 1 round", "+BC+CS, 5 rounds"),
}


def plan(seeds: int, quick: bool) -> list[Group]:
    """Return the groups of each seed: every variant meets the same trained features."""
    groups: dict[Run, list[Run]] = {}
    for seed in range(seeds):
        for stable, steps in FEATURES.values():
            if stable is None:
                (model,) = models("sfb", seed, quick)
            else:
                model = beside(*models("irm", seed, quick, [stable]), **UNSTABLE)
            runs = groups.setdefault(model, [model])
            runs += [adapted(model, PAPER_ADAPTER, **{**on, "steps": steps}) for on in VARIANTS.values()]
            runs.append(adapted(model, "sfb-paper-labels", **{**PAPER_HEAD, "steps": steps}))
    return [group(runs) for runs in groups.values()]


def rows(stable: Mapping[str, Any] | None, steps: int) -> tuple[Row, ...]:
    """Return the rows for features of the paper's training, with this f_S, or for ours."""
    chosen: dict[str, Any] = {"hyper": PAPER}
    if stable is not None:
        chosen = {"hyper": {**PAPER, "stable": {"weight": stable["weight"]}}, **ORACLE_CHOICE}
    trainer, who = ("sfb", "ours") if stable is None else ("sfb-paper", "paper")
    variants = [
        Row(
            f"SFB ({who}) {name.removeprefix('SFB')}".strip(),
            trainer,
            PAPER_ADAPTER,
            test_access="unlabelled",
            paper=name,
            adapter_hyper={**on, "steps": steps},
            **chosen,
        )
        for name, on in VARIANTS.items()
    ]
    unadapted = Row(f"SFB ({who}), no adaptation", trainer, paper="SFB no adpt.", **chosen)
    labels = Row(
        f"SFB ({who}), true labels",
        trainer,
        "sfb-paper-labels",
        test_access="labelled",
        paper="SFB GT adpt.",
        adapter_hyper={**PAPER_HEAD, "steps": steps},
        **chosen,
    )
    return (unadapted, *variants, labels)


def tables(records: Records) -> list[Table]:
    """Return, for the paper's features and for ours, a table and what each part gains."""
    paper = paper_table("ablations")
    made = []
    for whose, told in FEATURES.items():
        own = rows(*told)
        by_part = {row.paper: row for row in own}
        pairs = {label: (by_part[without], by_part[with_it]) for label, (without, with_it) in STEPS.items()}
        title = f"{paper.title}; {whose}"
        made.append(make_table(title, own, COLUMNS, records, paper))
        made.append(paired_table(f"{title}: what each part gains", pairs, COLUMNS, records, paper))
    return made


def figure(records: Records, path: Path) -> Path:
    """Draw the table of our features, where adaptation has something to work with."""
    return draw_dots(tables(records)[-2], path, ceiling=90.0)


EXPERIMENT = Experiment(
    "ablations",
    "ColoredMNIST at agreement 0.1: bias correction, calibration, rounds 1 to 5, true labels",
    seeds=3,
    quick_seeds=1,
    plan=plan,
    tables=tables,
    figure=figure,
    files_of=DATASET,
    protocol=PROTOCOL,
)
