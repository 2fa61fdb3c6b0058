"""ColoredMNIST: what bias correction, calibration and rounds each do for SFB, with the paper's Adam head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfboost_lab.experiments.cmnist import ORACLE_CHOICE, PAPER
from sfboost_lab.experiments.cmnist_shared import (
    DATASET,
    OUR_CHOICE,
    OUR_WAY,
    PAPER_ADAPTER,
    PAPER_HEAD,
    PROTOCOL,
    SHORT_IRM,
    STEADY_IRM,
    UNSTABLE,
    adapted,
    group,
    models,
    our_adaptations,
    parts,
)
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.figures import draw_dots
from sfboost_lab.experiments.grouped_runs import Group
from sfboost_lab.experiments.networks import beside
from sfboost_lab.experiments.paper import paper_table
from sfboost_lab.experiments.record import Records
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.tables import Row, Table, TableColumn, make_table, paired_table

COLUMNS = (TableColumn("0.1", DATASET, "test-0.1"),)
#: Whose features → f_S of the paper's training (None for ours), and steps of the head. With the published
#: steps alone, held-out rows would choose 15 to 17 of the head, by a tenth of a point (docs/reproduction.md).
FEATURES: dict[str, tuple[dict[str, Any] | None, int]] = {
    "SFB (paper), published steps": (STEADY_IRM, PAPER_HEAD["steps"]),
    "SFB (paper), published steps, 17 of the head": (STEADY_IRM, 17),
    "SFB (paper), short schedule": (SHORT_IRM, PAPER_HEAD["steps"]),
    "Features of ours": (None, PAPER_HEAD["steps"]),
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
    "all of its adaptation": ("SFB no adpt.", "+BC+CS, 3 rounds"),
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
            if stable is None:
                runs += our_adaptations(model, "sfb-flat")
    return [group(runs) for runs in groups.values()]


def rows(whose: str) -> dict[str, Row]:
    """Return the rows of one kind of features, by what the paper calls them."""
    stable, steps = FEATURES[whose]
    chosen: dict[str, Any] = {"trainer": "sfb", "hyper": PAPER, **OUR_WAY}
    if stable is not None:
        hyper = {**PAPER, "stable": {"weight": stable["weight"]}}
        chosen = {"trainer": "sfb-paper", "hyper": hyper, **ORACLE_CHOICE}
    made = {"SFB no adpt.": Row(f"{whose}: no adaptation", paper="SFB no adpt.", **chosen)}
    for name, on in VARIANTS.items():
        made[name] = Row(
            f"{whose}: {name.replace('SFB', 'no part')}",
            adapter=PAPER_ADAPTER,
            test_access="unlabelled",
            paper=name,
            adapter_hyper={**on, "steps": steps},
            **chosen,
        )
    made["SFB GT adpt."] = Row(
        f"{whose}: true labels",
        adapter="sfb-paper-labels",
        test_access="labelled",
        paper="SFB GT adpt.",
        adapter_hyper={**PAPER_HEAD, "steps": steps},
        **chosen,
    )
    return made


#: Our features with our own adaptation.
SFB_OURS = Row(
    "SFB (ours)", "sfb", "sfb-flat", test_access="unlabelled", hyper=PAPER, **OUR_CHOICE, **OUR_WAY
)


def tables(records: Records) -> list[Table]:
    """Return the accuracies, and what each part gains."""
    paper = paper_table("ablations")
    every = {whose: rows(whose) for whose in FEATURES}
    pairs = {
        f"{whose}: {label}": (own[without], own[with_it])
        for whose, own in every.items()
        for label, (without, with_it) in STEPS.items()
    }
    pairs["SFB (ours): all of its adaptation"] = (every["Features of ours"]["SFB no adpt."], SFB_OURS)
    shown = [row for own in every.values() for row in own.values()]
    gains = paired_table("What each part gains, at agreement 0.1", pairs, COLUMNS, records, paper)
    return [make_table(paper.title, [*shown, SFB_OURS], COLUMNS, records, paper), gains]


def figure(records: Records, path: Path) -> Path:
    """Draw the paper's features with the published steps, and ours."""
    drawn = ("SFB (paper), published steps", "Features of ours")
    shown = [row for whose in drawn for row in rows(whose).values()]
    paper = paper_table("ablations")
    return draw_dots(make_table(paper.title, [*shown, SFB_OURS], COLUMNS, records, paper), path, ceiling=90.0)


EXPERIMENT = Experiment(
    "ablations",
    "ColoredMNIST at agreement 0.1: bias correction, calibration, rounds 1 to 5, true labels",
    seeds=10,
    quick_seeds=1,
    plan=plan,
    tables=tables,
    figure=figure,
    files_of=DATASET,
    protocol=PROTOCOL,
)
