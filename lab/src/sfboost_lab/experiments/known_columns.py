"""Ours: tables whose stable columns are known, so that no network is trained: what adaptation alone can do.

Two experiments: the corrections side by side, and how many unlabelled rows they take.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfboost_lab.datasets import load
from sfboost_lab.experiments.engines import Group, Session
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.measuring import (
    Place,
    RunRows,
    adapter_hyper,
    fit_by_contract,
    labelled,
    measure_run,
    trainer_hyper,
)
from sfboost_lab.experiments.rendering import dots_of, draw_panels
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.store import Measured, Records
from sfboost_lab.experiments.tables import Row, Table, TableColumn, make_table

TRAINER = "sfb-columns"
_ROWS = 4096

#: Label → adapter and its changes. Each meets the same stable predictor. A step of the paper's head is read
#: as in `synthetic`: a pass in batches of 100. Twenty steps of all rows would leave it where it begins.
ADAPTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "stable columns alone": ("none", {}),
    "no correction": ("sfb", {"correction": "none", "force": True}),
    "SFB (paper): post-hoc, 20 passes of Adam": ("sfb-paper", {"batch_size": 100, "passes": True}),
    "post-hoc, to convergence": ("sfb", {"correction": "posthoc", "force": True}),
    "backward": ("sfb", {"correction": "backward", "force": True}),
    "forward": ("sfb", {"correction": "forward", "force": True}),
    "SFB (ours): likelihood": ("sfb", {"correction": "likelihood", "force": True}),
    "SFB (ours): likelihood, may refuse": ("sfb", {"correction": "likelihood"}),
    "true labels of half the rows": ("sfb-labels", {}),
}
#: It fits the stable classifier six times.
LEAK: dict[str, tuple[str, dict[str, Any]]] = {"SFB (ours): leak-corrected": ("sfb-leak", {})}
Adapters = Mapping[str, tuple[str, dict[str, Any]]]


def rows(adapters: Adapters = ADAPTERS) -> tuple[Row, ...]:
    """Return one row per adapter."""
    made = []
    for label, (adapter, changes) in adapters.items():
        access = {"none": "none", "sfb-labels": "labelled"}.get(adapter, "unlabelled")
        hyper = adapter_hyper(adapter, "synthetic", **changes)
        seen: dict[str, Any] = {"test_access": access, "adapter_hyper": hyper}
        if adapter == "sfb-paper":
            seen |= {"knows": True, "remark": "that it takes all 20 passes found on test accuracies"}
        made.append(Row(label, TRAINER, adapter, **seen))
    return tuple(made)


def group(dataset: str, seed: int, protocol: str, adapters: Adapters = ADAPTERS, **data: Any) -> Group:
    """Return every adapter on one draw."""
    known = load(dataset, n_rows=2)
    hyper = trainer_hyper(TRAINER, dataset, stable=known.stable_features, unstable=known.unstable_features)
    model = Run(dataset, TRAINER, seed, protocol, hyper=hyper, data=data)
    runs = [
        replace(model, adapter=adapter, adapter_hyper=adapter_hyper(adapter, "synthetic", **changes))
        for adapter, changes in adapters.values()
    ]
    return Group(f"{__name__}:measure", tuple(runs))


def rows_of(run: Run) -> RunRows:
    """Return `n_rows` (4096) rows a training domain and the first `n_test` (1000) of each test domain.

    Examples
    --------
    >>> run = Run("ac", TRAINER, seed=0, protocol="doc", data={"n_test": 30})
    >>> [(place.name, len(place.y)) for place in rows_of(run).places]
    [('test-0.1', 30)]
    """
    options = dict(run.data)
    n_test, n_rows = options.pop("n_test", 1000), options.pop("n_rows", _ROWS)
    dataset = load(run.dataset, n_rows=n_rows, random_state=run.data_seed, **options)
    tests = [dataset.domain(name) for name in dataset.test]
    places = tuple(Place(domain.name, domain.X[:n_test], domain.y[:n_test]) for domain in tests)
    return RunRows(labelled(dataset, dataset.train), labelled(dataset, dataset.validate), places)


def measure(run: Run, session: Session) -> Measured:
    """Measure one run."""
    return measure_run(run, session, rows_of, fit_by_contract)


WHERE = (
    TableColumn("AC", "ac", "test-0.1"),
    TableColumn("Gaussian", "gaussian", "test-0.1"),
    # Leak correction needs rows of each class in each cell.
    TableColumn("AC, four classes", "multiclass_ac", "test-0.05", data={"n_rows": 16_384}),
)


def plan_corrections(seeds: int, quick: bool) -> list[Group]:
    """Return one group per data set and seed."""
    protocol = CORRECTIONS.protocols[quick]
    return [
        group(column.dataset, seed, protocol, {**ADAPTERS, **LEAK}, **column.data)
        for column in WHERE
        for seed in range(seeds)
    ]


def corrections_tables(records: Records) -> list[Table]:
    """Return the table."""
    title = "Corrections on known columns: accuracy on 1000 unlabelled rows of the test domain"
    return [make_table(title, rows({**ADAPTERS, **LEAK}), WHERE, records)]


CORRECTIONS = Experiment(
    "corrections",
    "Ours: corrections of the pseudo-labels' bias on known columns",
    seeds=50,
    quick_seeds=5,
    plan=plan_corrections,
    tables=corrections_tables,
    figure=dots_of(corrections_tables),
)


SIZES = (30, 100, 300, 1000, 3000)
BY_SIZE = tuple(TableColumn(f"n = {n}", "gaussian", "test-0.1", data={"n_test": n}) for n in SIZES)


def plan_sizes(seeds: int, quick: bool) -> list[Group]:
    """Return one group per number of rows and seed."""
    protocol = SAMPLE_SIZE.protocols[quick]
    return [group("gaussian", seed, protocol, n_test=n) for n in SIZES for seed in range(seeds)]


def size_tables(records: Records) -> list[Table]:
    """Return the table."""
    title = "Unlabelled rows that adaptation needs: accuracy on those rows, Gaussian family"
    return [make_table(title, rows(), BY_SIZE, records)]


def size_figure(records: Records, path: Path) -> Path:
    """Draw accuracy against the number of rows."""
    (table,) = size_tables(records)
    panels = {"Gaussian family": (table, tuple(row.label for row, _ in table.rows))}
    return draw_panels(panels, SIZES, path, xlabel="unlabelled rows of the new domain", rising=True)


SAMPLE_SIZE = Experiment(
    "sample-size",
    "Ours: accuracy by the number of unlabelled rows, 30 to 3000",
    seeds=50,
    quick_seeds=5,
    plan=plan_sizes,
    tables=size_tables,
    figure=size_figure,
)
