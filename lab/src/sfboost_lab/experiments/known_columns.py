"""Synthetic tables whose stable columns are known: what adaptation alone can do. No network is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sfboost_lab.datasets import load
from sfboost_lab.experiments.grouped_runs import Group, Session
from sfboost_lab.experiments.measured_domains import Place, RunRows, labelled
from sfboost_lab.experiments.measuring import fit_by_contract, measure_run
from sfboost_lab.experiments.methods import adapter_hyper, trainer_hyper
from sfboost_lab.experiments.record import Measured
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.tables import Row

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
