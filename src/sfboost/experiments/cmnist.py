"""ColoredMNIST where colour and label agree in 10 % of the rows: the paper's table and its extended form."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sfboost.experiments.colored import DATASET, PROTOCOL, group, models, parts, sfb_runs
from sfboost.experiments.experiment import Experiment, Records
from sfboost.experiments.figures import draw_dots
from sfboost.experiments.paper import paper_table
from sfboost.experiments.rules import TEST_DOMAIN
from sfboost.experiments.tables import Column, Row, Table, make_table
from sfboost.experiments.work import Group

#: Oracles are empirical risk on other colourings: like the test domain, and at random.
LIKE_TEST, AT_RANDOM = {"agreements": [0.1, 0.1]}, {"agreements": [0.5, 0.5]}
#: The paper's choice on ColoredMNIST.
ORACLE_CHOICE: dict[str, Any] = {"rule": TEST_DOMAIN, "across_seeds": True}
RANDOM: dict[str, Any] = {"data": AT_RANDOM, "knows": True}
COLUMNS = (Column("0.1", DATASET, "test-0.1"),)
TITLES = {
    **{"erm": "ERM", "groupdro": "GroupDRO", "irm": "IRM", "sd": "SD", "iga": "IGA", "fishr": "Fishr"},
    **{"vrex": "V-REx", "eqrm": "EQRM"},
}


def sfb_rows(rounds: int = 3) -> tuple[Row, ...]:
    """Return the rows of SFB. λ of the paper's is chosen as the paper does, which is an ORACLE's choice."""
    irm = {"stability": "irm"}
    seen: dict[str, Any] = {"test_access": "unlabelled", "hyper": irm}
    theirs = Row(
        "SFB (paper)", "sfb-paper", "sfb-paper", adapter_hyper=parts(rounds), **seen, **ORACLE_CHOICE
    )
    ours = Row("SFB (ours)", "sfb", "sfb", **seen)
    rows = []
    for row in (theirs, ours):
        stable = replace(row, label=f"{row.label}, no adaptation", unadapted=True, test_access="none")
        rows += [replace(stable, paper="SFB no adpt."), replace(row, paper="SFB")]
    mixed = "Features of ours, adaptation of the paper"
    return (*rows, Row(mixed, "sfb", "sfb-paper", paper="SFB", adapter_hyper=parts(rounds), **seen))


def rows(trainers: tuple[str, ...]) -> tuple[Row, ...]:
    """Return the rows: baselines, SFB, both oracles."""
    return (
        *(Row(TITLES[name], name, paper=TITLES[name], **ORACLE_CHOICE) for name in trainers),
        *sfb_rows(),
        Row("Oracle, no adaptation", "erm", paper="Oracle no adpt.", **RANDOM, **ORACLE_CHOICE),
        Row("Oracle", "erm", test_access="labelled", paper="Oracle", data=LIKE_TEST, **ORACLE_CHOICE),
    )


def plan(trainers: tuple[str, ...], seeds: int, quick: bool) -> list[Group]:
    """Return the groups of each seed: the baselines, which share pretraining; SFB; each oracle."""
    groups = []
    for seed in range(seeds):
        groups.append(group([run for name in trainers for run in models(name, seed, quick)]))
        groups += [group(sfb_runs(name, seed, quick)) for name in ("sfb", "sfb-paper")]
        groups += [group(models("erm", seed, quick, data=data)) for data in (AT_RANDOM, LIKE_TEST)]
    return groups


def tables(trainers: tuple[str, ...], records: Records) -> list[Table]:
    """Return the table."""
    paper = paper_table("cmnist")
    return [make_table(paper.title, rows(trainers), COLUMNS, records, paper)]


def figure(trainers: tuple[str, ...], records: Records, path: Path) -> Path:
    """Draw ours beside the paper's."""
    return draw_dots(tables(trainers, records)[0], path, ceiling=90.0)


def _experiment(name: str, trainers: tuple[str, ...]) -> Experiment:
    return Experiment(
        name,
        f"ColoredMNIST at agreement 0.1: {', '.join(TITLES[t] for t in trainers)}, SFB, both oracles",
        seeds=10,
        quick_seeds=1,
        plan=partial(plan, trainers),
        tables=partial(tables, trainers),
        figure=partial(figure, trainers),
        files_of=DATASET,
        protocol=PROTOCOL,
    )


EXPERIMENT = _experiment("cmnist", ("erm", "irm"))
EXTENDED = _experiment("cmnist-extended", tuple(TITLES))
