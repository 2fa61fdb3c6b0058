"""ColoredMNIST where colour and label agree in 10 % of the rows: the paper's table and its extended form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sfboost_lab.experiments.cmnist_shared import (
    DATASET,
    FEW_SEEDS,
    MOVED,
    ONE_NETWORK,
    OUR_CHOICE,
    OUR_WAY,
    PAPER_ADAPTER,
    PROTOCOL,
    SHORTENED,
    STEADY_IRM,
    adapted,
    group,
    groups,
    models,
    oracle,
    our_runs,
    paper_runs,
    parts,
)
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.figures import draw_dots
from sfboost_lab.experiments.grouped_runs import Group
from sfboost_lab.experiments.paper import paper_table
from sfboost_lab.experiments.record import Records
from sfboost_lab.experiments.rules import TEST_DOMAIN
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.tables import Row, Table, TableColumn, make_table

#: Oracles are empirical risk on other colourings: like the test domain, and at random.
LIKE_TEST, AT_RANDOM = {"agreements": [0.1, 0.1]}, {"agreements": [0.5, 0.5]}
#: The paper's choice on ColoredMNIST.
ORACLE_CHOICE: dict[str, Any] = {"rule": TEST_DOMAIN, "across_seeds": True}
#: SFB (paper): f_S is the model of the penalty.
PAPER: dict[str, Any] = {"split": "separate", "stability": "irm"}
RANDOM: dict[str, Any] = {"data": AT_RANDOM, "knows": True}
COLUMNS = (TableColumn("0.1", DATASET, "test-0.1"),)
TITLES = {
    **{"erm": "ERM", "groupdro": "GroupDRO", "irm": "IRM", "sd": "SD", "iga": "IGA", "fishr": "Fishr"},
    **{"vrex": "V-REx", "eqrm": "EQRM"},
}


def sfb_rows(rounds: int = 3) -> tuple[Row, ...]:
    """Return the rows of SFB. λ of the paper's is chosen as the paper does, which is an ORACLE's choice."""
    seen: dict[str, Any] = {"test_access": "unlabelled", "paper": "SFB"}
    theirs = {"adapter_hyper": parts(rounds), **seen, **ORACLE_CHOICE}
    made = []
    for label, hyper, remark in (
        ("SFB (paper)", PAPER, MOVED["irm"]),
        ("SFB (paper), published steps", {**PAPER, "stable": {"weight": STEADY_IRM["weight"]}}, ""),
        ("SFB (paper), one network", {"split": "shared"}, SHORTENED),
    ):
        row = Row(label, "sfb-paper", PAPER_ADAPTER, hyper=hyper, remark=remark, **theirs)
        stable = replace(row, label=f"{label}, no adaptation", unadapted=True, test_access="none")
        made += [replace(stable, paper="SFB no adpt."), row]
    ours: dict[str, Any] = {"hyper": {"stability": "irm"}, **OUR_WAY}
    made.append(Row("SFB (ours), no adaptation", "sfb", paper="SFB no adpt.", **ours))
    made.append(Row("SFB (ours)", "sfb", "sfb-flat", **ours, **OUR_CHOICE, **seen))
    made.append(Row("SFB (ours, leak-corrected)", "sfb", "sfb-leak", **ours, **seen))
    mixed = {"adapter_hyper": parts(rounds), **ours, **seen}
    return (*made, Row("Features of ours, adaptation of the paper", "sfb", PAPER_ADAPTER, **mixed))


def rows(trainers: tuple[str, ...]) -> tuple[Row, ...]:
    """Return the rows: baselines, SFB, both oracles."""
    return (
        *(
            Row(TITLES[name], name, paper=TITLES[name], remark=MOVED.get(name, ""), **ORACLE_CHOICE)
            for name in trainers
        ),
        *sfb_rows(),
        Row("Oracle, no adaptation", "erm", paper="Oracle no adpt.", **RANDOM, **ORACLE_CHOICE),
        Row("Oracle", "erm", test_access="labelled", paper="Oracle", data=LIKE_TEST, **ORACLE_CHOICE),
    )


def plan(trainers: tuple[str, ...], seeds: int, quick: bool) -> list[Group]:
    """Return the groups of each seed: the baselines, which share pretraining, SFB, and each oracle."""
    made = [group(our_runs(seed, quick)) for seed in range(seeds)]
    for seed in range(seeds):
        runs = {name: models(name, seed, quick) for name in trainers}
        theirs = paper_runs(runs["irm"] + models("irm", seed, quick, [STEADY_IRM]), parts(3))
        made += groups([*runs.values(), theirs], quick)
        if seed < FEW_SEEDS:
            made.append(group(one_network(models("sfb-paper", seed, quick, ONE_NETWORK), 3)))
            made.append(group([oracle(seed, quick, data) for data in (AT_RANDOM, LIKE_TEST)]))
    return made


def one_network(trained: Iterable[Run], rounds: int) -> list[Run]:
    """Return the runs of SFB with one network whose output is split."""
    return [run for model in trained for run in (model, adapted(model, PAPER_ADAPTER, **parts(rounds)))]


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
