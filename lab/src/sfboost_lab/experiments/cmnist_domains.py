"""ColoredMNIST over eleven agreements of colour and label: adaptive baselines, curves of the figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sfboost_lab.experiments.cmnist import AT_RANDOM, ORACLE_CHOICE, PAPER, RANDOM, one_network, sfb_rows
from sfboost_lab.experiments.cmnist_shared import (
    AGREEMENTS,
    DATASET,
    FEW_SEEDS,
    MOVED,
    ONE_NETWORK,
    OUR_WAY,
    PAPER_ADAPTER,
    PROTOCOL,
    SHORT_IRM,
    STEADY_IRM,
    SWEEPS,
    adapted,
    group,
    models,
    oracle,
    our_runs,
    paper_runs,
    parts,
)
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.figures import draw_panels
from sfboost_lab.experiments.grouped_runs import Group
from sfboost_lab.experiments.paper import PaperValue, paper_table
from sfboost_lab.experiments.record import Records
from sfboost_lab.experiments.tables import Cell, Row, Table, TableColumn, make_table

ROUNDS = 5
#: The baselines here: ERM stopped where the paper's is in this table, IRM with the published steps and rate.
BASELINES: dict[str, dict[str, Any]] = {
    "erm": SWEEPS["erm"][1],
    "irm": STEADY_IRM,
}
LEAK = "SFB (ours, leak-corrected)"
COLUMNS = tuple(TableColumn(f"{a:.1f}", DATASET, f"test-{a}") for a in AGREEMENTS)
ADAPTERS = {"none": "", "t3a": "+T3A", "pl-last": "+PL(last)", "pl-all": "+PL(all)"}
#: Pseudo-labels of every row count, sure or not: the published threshold keeps rows where colour leaks into
#: f_S. How many rows T3A keeps was found by looking at the test domains (ORACLE).
_LABELS: dict[str, dict[str, Any]] = {
    "pl-last": {"threshold": 0.5, "learning_rate": 1e-5},
    "pl-all": {"threshold": 0.5},
}
OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "erm": {"t3a": {"filter_size": None}, **_LABELS},
    "irm": {"t3a": {"filter_size": 1000}, **_LABELS},
}
#: What tables say of that.
ADAPTERS_FOUND = {
    "t3a": "rows kept found on test accuracies",
    "pl-last": "threshold and rate found on test accuracies",
    "pl-all": "threshold found on test accuracies",
}
#: The curves of Figure 2, right: what is left of SFB without rounds, calibration, correction.
PARTS: dict[str, dict[str, Any]] = {
    "SFB, 5 rounds": parts(5),
    "SFB, 1 round": parts(),
    "SFB, 1 round, uncalibrated": parts(stable=False),
    "SFB, 1 round, uncalibrated, uncorrected": parts(stable=False, correct=False),
}


def plan(seeds: int, quick: bool) -> list[Group]:
    """Return the groups of each seed: ERM and IRM with adapters, SFB, the oracle."""
    groups = []
    for seed in range(seeds):
        runs = []
        for name, setting in BASELINES.items():
            for model in models(name, seed, quick, [setting]):
                runs += [model, *(adapted(model, adapter, **told) for adapter, told in OPTIONS[name].items())]
        runs += paper_runs(models("irm", seed, quick, [SHORT_IRM]), parts(ROUNDS))
        runs += paper_runs(models("irm", seed, quick, [STEADY_IRM]), *PARTS.values())
        ours = our_runs(seed, quick, ROUNDS)
        ours += [adapted(m, PAPER_ADAPTER, **c) for m in models("sfb", seed, quick) for c in PARTS.values()]
        groups += [group(runs), group(list(dict.fromkeys(ours)))]
        if seed < FEW_SEEDS:
            shared = models("sfb-paper", seed, quick, ONE_NETWORK)
            groups.append(group(one_network(shared, ROUNDS)))
            coloured = [AT_RANDOM] if quick else [{"agreements": [a, a]} for a in AGREEMENTS]
            groups += [group([oracle(seed, quick, data)]) for data in coloured]
    return groups


def _quick(records: Records) -> bool:
    return all(record.run.protocol != PROTOCOL for record in records.values())


def rows(records: Records) -> tuple[Row, ...]:
    """Return the rows."""
    quick = _quick(records)
    baselines = [
        Row(
            f"{trainer.upper()}{suffix.replace('+', ' + ')}",
            trainer,
            adapter,
            test_access="none" if adapter == "none" else "unlabelled",
            paper=f"{trainer.upper()}{suffix}",
            hyper={} if quick else setting,
            remark="; ".join(told for told in (_remark(trainer), ADAPTERS_FOUND.get(adapter, "")) if told),
            **ORACLE_CHOICE,
        )
        for trainer, setting in BASELINES.items()
        for adapter, suffix in ADAPTERS.items()
    ]
    grey = Row("Oracle, no adaptation", "erm", **RANDOM, **ORACLE_CHOICE)
    # This table of the paper has no row without adaptation.
    boosted = [replace(r, paper=None) if r.paper == "SFB no adpt." else r for r in sfb_rows(ROUNDS)]
    return (*baselines, *boosted, grey)


def _remark(trainer: str) -> str:
    return MOVED["erm"] if trainer == "erm" else ""


def tables(records: Records) -> list[Table]:
    """Return the table over domains, the parts of SFB as in Figure 2, and how far SFB is from the oracle."""
    paper = paper_table("cmnist-domains")
    main = make_table(paper.title, rows(records), COLUMNS, records, paper)
    made = [main, make_table("The parts of SFB", rows_of_parts(), COLUMNS, records, paper_table("figure2"))]
    return made if _quick(records) else [*made, _oracle_table(main, records)]


def rows_of_parts() -> tuple[Row, ...]:
    """Return the curves of Figure 2, right: the paper's adaptation on the paper's features and on ours."""
    steady = {**PAPER, "stable": {"weight": STEADY_IRM["weight"]}}
    made = []
    for who, trainer, chosen in (
        ("SFB (paper)", "sfb-paper", {"hyper": steady, **ORACLE_CHOICE}),
        ("Features of ours", "sfb", {"hyper": {"stability": "irm"}, **OUR_WAY}),
    ):
        for name, on in PARTS.items():
            label = name.replace("SFB", who)
            options: dict[str, Any] = {"test_access": "unlabelled", "adapter_hyper": on, **chosen}
            made.append(Row(label, trainer, PAPER_ADAPTER, paper=name, **options))
        made.append(Row(f"{who}, no adaptation", trainer, paper="SFB no adpt.", **chosen))
    return (*made, *(replace(row, paper=None) for row in sfb_rows() if row.label == "SFB (ours)"))


def _oracle_table(main: Table, records: Records) -> Table:
    """Return the oracle of every agreement, and how many points below it SFB is on average."""
    curves, seen = paper_table("figure2"), {"test_access": "labelled", **ORACLE_CHOICE}
    cells: list[Cell] = []
    for a, column in zip(AGREEMENTS, COLUMNS, strict=True):
        row = Row("Oracle", "erm", paper="Oracle", data={"agreements": [a, a]}, **seen)
        cells += make_table("", [row], [column], records, curves).rows[0][1]
    lowest = Cell((min(cell.mean for cell in cells),))
    made: list[tuple[Row, tuple[Cell, ...]]] = [(row, (*cells, lowest))]
    for boosted, own in main.rows:
        if "SFB" not in boosted.label or boosted.unadapted or boosted.adapter == "none":
            continue
        gaps = [_gap(cell, best) for cell, best in zip(own, cells, strict=True)]
        theirs = [gap.paper for gap in gaps if gap.paper is not None]
        largest = max(theirs, key=lambda value: value.mean, default=None)
        worst = Cell((max(gap.mean for gap in gaps),), largest)
        made.append((replace(boosted, label=f"{boosted.label}, points below it"), (*gaps, worst)))
    title = "Oracle: empirical risk on images coloured like each test domain"
    return Table(title, (*main.columns, "worst"), tuple(made), curves.note)


def _gap(own: Cell, best: Cell) -> Cell:
    paper = None
    if own.paper is not None and best.paper is not None:
        paper = PaperValue(best.paper.mean - own.paper.mean, float("nan"), "unclear", own.paper.seeds)
    return Cell(tuple(best.mean - value for value in own.values), paper)


def figure(records: Records, path: Path) -> Path:
    """Draw both panels of Figure 2 and the motivating Figure 1b."""
    main, by_part = tables(records)[:2]
    few = ("ERM", "IRM", "IRM + PL(all)", "IRM + T3A", "SFB (paper), published steps", "SFB (ours)", LEAK)
    ideal = ("ERM", "Oracle, no adaptation", LEAK)
    theirs = tuple(row.label for row, _ in by_part.rows if row.trainer == "sfb-paper")
    panels = {
        "Methods (Figure 2, left)": (main, few),
        "Parts of SFB (Figure 2, right)": (by_part, theirs),
        "What there is to gain (Figure 1b)": (main, ideal),
    }
    # Shape is right in 75 % of the rows, colour in `a` or 1 - `a`: the better of them cannot be beaten.
    best = [100 * max(0.75, a, 1 - a) for a in AGREEMENTS]
    label = "agreement of colour and label in the test domain"
    return draw_panels(panels, AGREEMENTS, path, xlabel=label, ceiling=best)


EXPERIMENT = Experiment(
    "cmnist-domains",
    "ColoredMNIST over eleven agreements: ERM and IRM with T3A and pseudo-labels, SFB; Figures 1b and 2",
    seeds=10,
    quick_seeds=1,
    plan=plan,
    tables=tables,
    figure=figure,
    files_of=DATASET,
    protocol=PROTOCOL,
)
