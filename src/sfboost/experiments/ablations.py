"""ColoredMNIST: what bias correction, calibration and rounds each do for SFB, with the paper's Adam head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfboost.experiments.cmnist import ORACLE_CHOICE
from sfboost.experiments.colored import DATASET, PROTOCOL, UNSTABLE, adapted, group, models, parts
from sfboost.experiments.experiment import Experiment, Records
from sfboost.experiments.figures import draw_dots
from sfboost.experiments.paper import paper_table
from sfboost.experiments.tables import Column, Row, Table, make_table, paired_table
from sfboost.experiments.two_stage import beside
from sfboost.experiments.work import Group

COLUMNS = (Column("0.1", DATASET, "test-0.1"),)


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
    """Return two groups per seed: every variant meets the same trained features, the paper's or ours."""
    groups = []
    for seed in range(seeds):
        # The short schedule, and on the swept seeds the published one.
        theirs = (beside(model, **UNSTABLE) for model in models("irm", seed, quick)[:2])
        for features in (theirs, models("sfb", seed, quick)):
            runs = []
            for model in features:
                runs += [model, *(adapted(model, "sfb-paper", **on) for on in VARIANTS.values())]
                runs.append(adapted(model, "sfb-paper-labels"))
            groups.append(group(runs))
    return groups


def rows(trainer: str) -> tuple[Row, ...]:
    """Return the rows for features of the paper's training ("sfb-paper") or of ours ("sfb")."""
    chosen: dict[str, Any] = {"hyper": {"stability": "irm", "split": "separate"}}
    chosen |= ORACLE_CHOICE if trainer == "sfb-paper" else {}
    who = "paper" if trainer == "sfb-paper" else "ours"
    variants = [
        Row(
            f"SFB ({who}) {name.removeprefix('SFB')}".strip(),
            trainer,
            "sfb-paper",
            test_access="unlabelled",
            paper=name,
            adapter_hyper=on,
            **chosen,
        )
        for name, on in VARIANTS.items()
    ]
    stable = Row(f"SFB ({who}), no adaptation", trainer, paper="SFB no adpt.", **chosen)
    labels = Row(
        f"SFB ({who}), true labels",
        trainer,
        "sfb-paper-labels",
        test_access="labelled",
        paper="SFB GT adpt.",
        **chosen,
    )
    return (stable, *variants, labels)


def tables(records: Records) -> list[Table]:
    """Return, for the paper's features and for ours, a table and what each part gains."""
    paper = paper_table("ablations")
    made = []
    for trainer, whose in (("sfb-paper", "the paper's"), ("sfb", "our")):
        own = rows(trainer)
        by_part = {row.paper: row for row in own}
        pairs = {label: (by_part[without], by_part[with_it]) for label, (without, with_it) in STEPS.items()}
        title = f"{paper.title}; {whose} features"
        made.append(make_table(title, own, COLUMNS, records, paper))
        made.append(paired_table(f"{title}: what each part gains", pairs, COLUMNS, records, paper))
    return made


def figure(records: Records, path: Path) -> Path:
    """Draw the table of our features, where adaptation has something to work with."""
    return draw_dots(tables(records)[2], path, ceiling=90.0)


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
