"""AC and CE-DD: the paper's synthetic table.

Rows as in the code behind the published numbers: 1024 a domain; training agreements 0.95 and 0.7 (CE-DD:
0.8), validation 0.6 (0.2), test 0.1. The baselines have their published hyper-parameters; those of SFB are
chosen for each seed on the validation domain.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfboost.datasets import load
from sfboost.datasets.synthetic import family
from sfboost.experiments.experiment import Experiment, Records
from sfboost.experiments.measuring import fit_by_contract, measure_run
from sfboost.experiments.paper import paper_table
from sfboost.experiments.places import Material, labelled, place_of
from sfboost.experiments.record import Measured
from sfboost.experiments.rules import RULES, VALIDATION_DOMAIN
from sfboost.experiments.run import Run
from sfboost.experiments.small_nets import blocks, fit_small
from sfboost.experiments.tables import Column, Row, Table, make_table
from sfboost.experiments.work import Group, Session

NAME = "synthetic"
DATASETS = ("ac", "ce_dd")
_ROWS = 1024

#: The paper: one network whose output is split, λ_S and λ_C from its grids; the rest as in ACTIR's code.
PAPER: dict[str, Any] = {
    "split": "shared",
    "learning_rate": 0.01,
    "steps": 800,
    "batch_size": 128,
    "calibration": "ece",
}
PAPER_GRID = {"stability_weight": (0.01, 0.1, 1, 5, 10, 20), "independence_weight": (0.01, 0.1, 1)}
PAPER_ADAPTER = {"early_stopped": 20}
#: Ours: f_S on balanced rows, then Φ_U.
OURS: dict[str, Any] = {
    "split": "separate",
    "balance": True,
    "learning_rate": 0.01,
    "steps": 400,
    "unstable_steps": 400,
    "batch_size": 512,
    "calibration": "nll",
}
OURS_GRID = {"stability_weight": (1, 5, 10, 20), "independence_weight": (1,)}
QUICK_GRID = {"stability_weight": (1, 10), "independence_weight": (1,)}

ROWS = (
    Row("ERM", "erm", paper="ERM"),
    Row("ERM + PL", "erm", "pl-last", test_access="unlabelled", paper="ERM+PL"),
    Row("IRM", "irm", paper="IRM"),
    Row("IRM + PL", "irm", "pl-last", test_access="unlabelled", paper="IRM+PL"),
    Row("ACTIR", "actir", paper="ACTIR"),
)
_SHARED, _SEPARATE = {"split": "shared"}, {"split": "separate"}


def sfb_rows(rule: Any) -> tuple[Row, ...]:
    """Return the rows of SFB, chosen by a rule: the paper's and ours, without and with adaptation."""
    rows = []
    for who, split, adapter, beside in (
        ("paper", _SHARED, "sfb-paper", ("SFB no adpt.", "SFB")),
        ("ours", _SEPARATE, "sfb", (None, None)),
    ):
        rows.append(
            Row(f"SFB ({who}), no adaptation", "sfb", "none", rule, adapter, paper=beside[0], hyper=split)
        )
        rows.append(
            Row(
                f"SFB ({who})",
                "sfb",
                adapter,
                rule,
                test_access="unlabelled",
                paper=beside[1],
                hyper=split,
            )
        )
    return tuple(rows)


def plan(seeds: int, quick: bool) -> list[Group]:
    """Return the groups: one per data set, trainer and block of seeds."""
    protocol = EXPERIMENT.protocols[quick]
    measure = f"{__name__}:measure"
    groups = []
    for dataset in DATASETS:
        for trainer, adapters in (
            ("erm", ("none", "pl-last")),
            ("irm", ("none", "pl-last")),
            ("actir", ("none",)),
        ):
            for block in blocks(seeds, 1, members=10):
                runs = [Run(dataset, trainer, s, protocol, adapter=a) for s in block for a in adapters]
                groups.append(Group(measure, tuple(runs)))
        for recipe, grid, adapter, hyper in (
            (PAPER, PAPER_GRID, "sfb-paper", PAPER_ADAPTER),
            (OURS, OURS_GRID, "sfb", {}),
        ):
            candidates = _grid(QUICK_GRID if quick else grid)
            for block in blocks(seeds, len(candidates)):
                pairs = itertools.product(block, candidates)
                models = [Run(dataset, "sfb", s, protocol, hyper={**recipe, **c}) for s, c in pairs]
                groups.append(Group(measure, tuple(r for m in models for r in _both(m, adapter, hyper))))
    # The longest first: the last one to finish should be short.
    return sorted(groups, key=lambda group: -len(group.runs))


def _grid(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


def _both(model: Run, adapter: str, hyper: Mapping[str, Any]) -> tuple[Run, Run]:
    from dataclasses import replace

    return model, replace(model, adapter=adapter, adapter_hyper=hyper)


def material(run: Run) -> Material:
    """Return the rows of a run: as in the published code, and fresh ones of the same domains to choose on."""
    settings = family(run.dataset).settings
    train = [s.dials["agreement"] for s in settings if s.role == "train"]
    validate = [s.dials["agreement"] for s in settings if s.role == "validate"]
    test = [s.dials["agreement"] for s in settings if s.role == "test"]
    # A domain's rows depend on its name alone, so the additional domains change none of the others.
    dataset = load(
        run.dataset,
        n_rows=_ROWS,
        random_state=run.data_seed,
        validate=[*validate, *train],
        test=[*test, *test],
        **run.data,
    )
    own = dataset.validate[: len(validate)]
    held = dict(zip(dataset.train, dataset.validate[len(validate) :], strict=True))
    reported, oracle = dataset.test[: len(test)], dataset.test[len(test) :]
    places = [place_of(dataset, name) for name in (*reported, *own)]
    places += [place_of(dataset, name, f"held/{domain}") for domain, name in held.items()]
    places += [place_of(dataset, n, f"oracle/{t}") for t, n in zip(reported, oracle, strict=True)]
    pool = labelled(dataset, (*own, *held.values()))
    return Material(labelled(dataset, dataset.train), labelled(dataset, own), tuple(places), pool)


def measure(run: Run, session: Session) -> Measured:
    """Measure one run."""

    def fit(run: Run, session: Session, rows: Material) -> Any:
        if run.trainer == "sfb":
            return fit_small(material, run, session, rows)
        return fit_by_contract(run, session, rows)

    return measure_run(run, session, material, fit, stress_rows=_ROWS)


def columns() -> list[Column]:
    """Return the columns of the table."""
    return [Column("AC", "ac", "test-0.1"), Column("CE-DD", "ce_dd", "test-0.1")]


def tables(records: Records) -> list[Table]:
    """Return the paper's table, and the same rows under every rule of choice."""
    paper = paper_table(NAME)
    main = make_table(
        paper.title,
        (*ROWS, *sfb_rows(VALIDATION_DOMAIN)),
        columns(),
        records,
        paper,
        note="Ours: mean ± standard error (seeds).",
    )
    rows = [
        row
        for name in RULES
        if name != "leave-one-out"
        for row in sfb_rows(RULES[name])
        if row.adapter != "none"
    ]
    rules = make_table("The same runs, chosen by other rules", rows, columns(), records)
    return [main, rules]


def figure(records: Records, path: Path) -> Path:
    """Draw ours beside the paper's as a chart of dots."""
    from sfboost.experiments.figures import draw_dots

    return draw_dots(tables(records)[0], path, ceiling=90.0)


EXPERIMENT = Experiment(
    NAME,
    "AC and CE-DD: ERM, IRM, pseudo-labels, ACTIR, SFB",
    seeds=100,
    quick_seeds=3,
    plan=plan,
    tables=tables,
    figure=figure,
)
