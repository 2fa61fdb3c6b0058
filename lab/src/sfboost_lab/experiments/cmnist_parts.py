"""ColoredMNIST at agreement 0.1: what the parts of SFB's adaptation each do, and SFB with other penalties."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any

from sfboost_lab.experiments.cmnist import (
    COLUMNS,
    DATASET,
    FEW_SEEDS,
    MOVED,
    ORACLE_CHOICE,
    OUR_CHOICE,
    OUR_WAY,
    PAPER,
    PAPER_ADAPTER,
    PAPER_HEAD,
    PROTOCOL,
    ROUNDS,
    SHORT_IRM,
    STEADY_IRM,
    UNSTABLE,
    adapted,
    group,
    groups,
    models,
    our_adaptations,
    paper_runs,
    parts,
)
from sfboost_lab.experiments.engines import Group
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.networks import beside
from sfboost_lab.experiments.paper import paper_table
from sfboost_lab.experiments.rendering import dots_of, draw_dots
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.store import Records
from sfboost_lab.experiments.tables import Cell, Row, Table, make_table, paired_table

#: Whose features → f_S of the paper's training (None for ours), and steps of the head. With the published
#: steps alone, held-out rows would choose 15 to 17 of the head, by a tenth of a point.
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


def plan_ablations(seeds: int, quick: bool) -> list[Group]:
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


def ablation_rows(whose: str) -> dict[str, Row]:
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


def ablation_tables(records: Records) -> list[Table]:
    """Return the accuracies, and what each part gains."""
    paper = paper_table("ablations")
    every = {whose: ablation_rows(whose) for whose in FEATURES}
    pairs = {
        f"{whose}: {label}": (own[without], own[with_it])
        for whose, own in every.items()
        for label, (without, with_it) in STEPS.items()
    }
    pairs["SFB (ours): all of its adaptation"] = (every["Features of ours"]["SFB no adpt."], SFB_OURS)
    shown = [row for own in every.values() for row in own.values()]
    gains = paired_table("What each part gains, at agreement 0.1", pairs, COLUMNS, records, paper)
    return [make_table(paper.title, [*shown, SFB_OURS], COLUMNS, records, paper), gains]


def ablation_figure(records: Records, path: Path) -> Path:
    """Draw the paper's features with the published steps, and ours."""
    drawn = ("SFB (paper), published steps", "Features of ours")
    shown = [row for whose in drawn for row in ablation_rows(whose).values()]
    paper = paper_table("ablations")
    return draw_dots(make_table(paper.title, [*shown, SFB_OURS], COLUMNS, records, paper), path, ceiling=90.0)


ABLATIONS = Experiment(
    "ablations",
    "ColoredMNIST at agreement 0.1: bias correction, calibration, rounds 1 to 5, true labels",
    seeds=10,
    quick_seeds=1,
    plan=plan_ablations,
    tables=ablation_tables,
    figure=ablation_figure,
    files_of=DATASET,
    protocol=PROTOCOL,
)


#: Title → the penalty's name; λ is swept as for the baseline of the same penalty.
PENALTIES = {"IRM": "irm", "V-REx": "vrex", "EQRM": "eqrm", "CLOvE": "clove"}
#: EQRM's is a deviation, not a variance: its gradient does not fade where the risks are equal but for noise.
OUR_WEIGHTS: dict[str, dict[str, Any]] = {"eqrm": {"stability_weight": 0.1}}


def plan_penalties(seeds: int, quick: bool) -> list[Group]:
    """Return the groups of each seed: the paper's features, which share pretraining, and ours.

    Our features with another penalty than IRM have three seeds.
    """
    made = []
    for seed in range(seeds):
        theirs, ours = [], []
        for penalty in PENALTIES.values():
            theirs.append(paper_runs(models(penalty, seed, quick), parts(ROUNDS)))
            if penalty != "irm" and seed >= FEW_SEEDS:
                continue
            for model in models("sfb", seed, quick, [OUR_WEIGHTS.get(penalty, {}) | {"stability": penalty}]):
                ours.append(group([model, *our_adaptations(model, "sfb-flat")]))
        # In turns: what begins together should not pretrain the same twice.
        pairs = zip_longest(groups(theirs, quick), ours)
        made += [one for pair in pairs for one in pair if one is not None]
    return made


def _penalty_row(title: str, who: str, unadapted: bool) -> Row:
    options: dict[str, Any] = {"hyper": {"stability": PENALTIES[title], "split": "separate"}}
    options["unadapted"] = unadapted
    options["test_access"] = "none" if unadapted else "unlabelled"
    if who == "ours":
        return Row(f"{title}, SFB (ours)", "sfb", "sfb-flat", **OUR_CHOICE, **OUR_WAY, **options)
    options |= {"adapter_hyper": parts(ROUNDS), "remark": MOVED.get(PENALTIES[title], ""), **ORACLE_CHOICE}
    return Row(f"{title}, SFB (paper)", "sfb-paper", PAPER_ADAPTER, **options)


def penalty_tables(records: Records) -> list[Table]:
    """Return the table: without and with adaptation, side by side."""
    paper = paper_table("penalties")
    made = []
    for title in PENALTIES:
        for who in ("paper", "ours"):
            both = _penalty_row(title, who, True), _penalty_row(title, who, False)
            cells = []
            for row, column in zip(both, paper.columns, strict=True):
                cell = make_table("", [row], [COLUMNS[0]], records).rows[0][1][0]
                cells.append(Cell(cell.values, paper.value(title, column)))
            made.append((both[1], tuple(cells)))
    return [Table(paper.title, paper.columns, tuple(made), paper.note)]


PENALTY_EXPERIMENT = Experiment(
    "penalties",
    "ColoredMNIST at agreement 0.1: SFB with IRM, V-REx, EQRM, CLOvE",
    seeds=10,
    quick_seeds=1,
    plan=plan_penalties,
    tables=penalty_tables,
    figure=dots_of(penalty_tables, ceiling=90.0),
    files_of=DATASET,
    protocol=PROTOCOL,
)
