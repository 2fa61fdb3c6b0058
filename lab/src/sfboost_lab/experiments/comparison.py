"""A researcher's table: chosen systems on one's own domains, each left out in turn.

Whatever a system leaves open is chosen without the new domain: by training domains left out where there are
three or more, else by held-out rows of the training domains. What adapts is adapted there blind, too.
"""

from __future__ import annotations

import hashlib
import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from sfboost.datasets.contract import Dataset
from sfboost.datasets.images import ImageSequence
from sfboost.frames import EncodingWarning
from sfboost_lab.baselines.contract import Predictor
from sfboost_lab.baselines.registry import ADAPTERS, TRAINERS
from sfboost_lab.datasets import load
from sfboost_lab.datasets.own_tables import encode
from sfboost_lab.experiments.engines import Group, Session
from sfboost_lab.experiments.measuring import Place, RunRows, fit_by_contract, measure_run, place_of, rows_at
from sfboost_lab.experiments.rules import LEAVE_ONE_OUT, TRAINING_DOMAINS, Rule
from sfboost_lab.experiments.run import Run, digest
from sfboost_lab.experiments.store import Measured, Records
from sfboost_lab.experiments.tables import Cell, Row, Table, TableColumn, make_table, paired_table

PROTOCOL = "compare"
NOTE = (
    "Mean ± standard error over draws of the training rows (four fifths of each domain) and of training; the "
    "rows of the new domain are the same in all. (1): one draw has no error."
)
_HELD_OUT = 0.2
_LEAST_ROWS = 5
_RATES = (1e-4, 1e-3, 1e-2)
_WEIGHTS = (1.0, 10.0, 100.0, 1000.0)
#: Trainer → what is chosen among; those that are not here have nothing to choose, or choose by themselves.
TRAINER_GRIDS: dict[str, dict[str, Sequence[Any]]] = {
    "erm": {"l2": (0.0, 1e-3, 1e-2)},
    "groupdro": {"step_size": (0.01, 0.1, 1.0)},
    **{name: {"weight": _WEIGHTS} for name in ("irm", "vrex", "sd", "iga", "fishr", "clove")},
    "eqrm": {"alpha": (0.25, 0.5, 0.75)},
    **{name: {"stability_weight": _WEIGHTS[:3]} for name in ("sfb", "sfb-paper")},
    "left-out-linear": {"C": (1e-3, 1e-2, 1e-1)},
}
#: Adapter → what is chosen among.
ADAPTER_GRIDS: dict[str, dict[str, Sequence[Any]]] = {
    **{name: {"learning_rate": _RATES} for name in ("pl-last", "pl-all", "tent", "shot")},
    "t3a": {"filter_size": (5, 20, 100)},
    "sfb-components": {"n_components": (4, 8, 16)},
}
#: What is compared by default: these, and two more, where stable columns are known and where nobody knows.
DEFAULT = ("pooled", "pooled+t3a", "pooled+shot")
WITH_COLUMNS = ("sfb-columns", "sfb-columns+sfb-best")
WITHOUT_COLUMNS = ("left-out-linear", "left-out-linear+sfb-components")


@dataclass(frozen=True)
class ChosenSystem:
    """A trainer and an adapter, and all settings of them that are chosen among.

    Examples
    --------
    >>> ChosenSystem.named("pooled+t3a").label
    'pooled classifier + T3A'
    """

    trainer: str
    adapter: str = "none"

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the system of TRAINER or TRAINER+ADAPTER; an unknown name is a KeyError."""
        trainer, _, adapter = name.partition("+")
        TRAINERS[trainer], ADAPTERS[adapter or "none"]
        return cls(trainer, adapter or "none")

    @property
    def label(self) -> str:
        """How tables call it."""
        added = "" if self.adapter == "none" else f" + {ADAPTERS[self.adapter].title}"
        return f"{TRAINERS[self.trainer].title}{added}"

    def settings(self, quick: bool) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return hyper-parameters of trainer and adapter, all of them; the defaults alone if quick."""
        grids = ({}, {}) if quick else (TRAINER_GRIDS, ADAPTER_GRIDS)
        trainers = [asdict(TRAINERS[self.trainer](**one)) for one in _product(grids[0], self.trainer)]
        adapters = [asdict(ADAPTERS[self.adapter](**one)) for one in _product(grids[1], self.adapter)]
        return list(itertools.product(trainers, adapters))


def _product(grids: Mapping[str, Mapping[str, Sequence[Any]]], name: str) -> list[dict[str, Any]]:
    grid = grids.get(name, {})
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


@dataclass(frozen=True)
class SystemComparison:
    """Systems on a data set.

    Parameters
    ----------
    dataset : str
        Name of a data set; "table" is a file of one's own.
    options : mapping
        Of the data set, plain values.
    systems : tuple of ChosenSystem
        The first is what the others are compared with.
    quick : bool
        Choose nothing: each system has its defaults.

    Examples
    --------
    >>> ac = SystemComparison("ac", {"n_rows": 200}, (ChosenSystem("pooled"), ChosenSystem("pooled", "t3a")))
    >>> [column.label for column in ac.columns()], len(ac.plan(2))
    (['test-0.1'], 2)
    """

    dataset: str
    options: Mapping[str, Any] = field(default_factory=dict)
    systems: tuple[ChosenSystem, ...] = ()
    quick: bool = False

    @cached_property
    def data(self) -> Dataset:
        """The data set, as it is."""
        return load(self.dataset, **_own(self.options))

    def among(self, systems: Iterable[ChosenSystem], quick: bool = False) -> Self:
        """The same with these systems; the data are not loaded, and nothing is said of them, again."""
        same = replace(self, systems=tuple(systems), quick=quick)
        same.__dict__["data"] = self.data
        return same

    @cached_property
    def where(self) -> dict[str, tuple[tuple[str, ...], dict[str, str]]]:
        """New domain → training domains, and what of a run's data says which domain is new."""
        names = self.data.domain_names
        if all(name.startswith(("train", "validate", "test", "oracle")) for name in names):  # roles by name
            return {name: (self.data.train, {}) for name in self.data.test}
        if len(names) < 2:
            raise ValueError(
                f"There is one domain, {names[0]!r}: comparing needs one to learn from, one to be new."
            )
        return {new: (tuple(sorted(n for n in names if n != new)), {"new": new}) for new in names}

    def tell_gaps(self) -> None:
        """Warn once of what is missing in a table: runs fill it in silently, each by its training domains."""
        if hasattr(self.data.domains[0].X, "columns"):
            encode(self.data.with_roles(train=self.data.domain_names, validate=(), test=()))

    def columns(self) -> list[TableColumn]:
        """Return one column for each new domain."""
        return [
            TableColumn(name, self.dataset, f"test-{name}", data={**self.options, **said})
            for name, (_, said) in self.where.items()
        ]

    def rule(self) -> Rule:
        """Return how settings are chosen."""
        return LEAVE_ONE_OUT if min(len(t) for t, _ in self.where.values()) > 2 else TRAINING_DOMAINS

    def refuse(self) -> None:
        """Raise what is wrong with a table, before run after run fails of it."""
        holders: dict[int, list[str]] = {}
        for domain in self.data.domains:
            if len(domain.y) < _LEAST_ROWS:
                raise ValueError(
                    f"Domain {domain.name!r} has {len(domain.y)} of the {_LEAST_ROWS} rows that it takes to "
                    "learn from it and to be new: leave it out, or join domains."
                )
            for label in np.unique(domain.y[domain.y >= 0]):
                holders.setdefault(int(label), []).append(domain.name)
        for label, names in holders.items():
            if len(names) == 1:
                raise ValueError(
                    f"Class {self.data.classes[label]!r} is in domain {names[0]!r} alone, and nothing knows "
                    "it where that is new: leave its rows out, or join classes or domains."
                )
        for _, said in self.where.values():
            _as_numbers(self.data, said.get("new"))

    def plan(self, seeds: int) -> list[Group]:
        """Return the groups of runs: those of a trainer on the same training rows."""
        trained = {str(said): (train, {**self.options, **said}) for train, said in self.where.values()}
        names = dict.fromkeys(system.trainer for system in self.systems)
        return [
            self._group(trainer, seed, train, data)
            for train, data in trained.values()
            for seed in range(seeds)
            for trainer in names
        ]

    def cost(self, seeds: int) -> str:
        """Return how much there is to do, in words."""
        runs = {run for group in self.plan(seeds) for run in group.runs}
        models = len({digest(run.training()) for run in runs})
        about = f"systems: {len(self.systems)}, new domains: {len(self.where)}, draws: {seeds}"
        return f"{len(runs)} runs of {models} trained models ({about})"

    def _group(self, trainer: str, seed: int, train: Sequence[str], data: Mapping[str, Any]) -> Group:
        runs = []
        for system in (system for system in self.systems if system.trainer == trainer):
            own = [
                Run(self.dataset, trainer, seed, PROTOCOL, system.adapter, data, hyper, adapter_hyper)
                for hyper, adapter_hyper in system.settings(self.quick)
            ]
            runs += own
            if len(own) > 1:  # else there is nothing to choose
                runs += [need for run in own for need in self.rule().needs(run, train)]
        # Runs of one trained model stand together: it is trained once.
        runs.sort(key=lambda run: (str(run.left_out), str(run.hyper)))
        return Group(f"{__name__}:measure", tuple(runs))

    def tables(self, records: Records) -> list[Table]:
        """Return the accuracies, and what each system has more than the first."""
        rows = [self._row(system) for system in self.systems]
        columns = self.columns()
        made = [make_table(f"{self.name}, accuracy in the new domain", rows, columns, records, note=NOTE)]
        if len(rows) > 1:
            pairs = {f"{row.label} - {rows[0].label}": (rows[0], row) for row in rows[1:]}
            made.append(paired_table(f"{self.name}, differences", pairs, columns, records))
        return [_with_mean(table) for table in made]

    @property
    def name(self) -> str:
        """What tables call the data."""
        return Path(self.options["source"]).stem if "source" in self.options else self.dataset

    def _row(self, system: ChosenSystem) -> Row:
        rule = self.rule() if len(system.settings(self.quick)) > 1 else None
        access = ADAPTERS[system.adapter].test_access
        return Row(system.label, system.trainer, system.adapter, rule, test_access=access)


def _with_mean(table: Table) -> Table:
    """The table with the mean over its columns, seed by seed."""
    if len(table.columns) < 2:
        return table
    rows = []
    for row, cells in table.rows:
        whole = len({len(cell.values) for cell in cells}) == 1
        means = np.mean([cell.values for cell in cells], axis=0).tolist() if whole else []
        rows.append((row, (*cells, Cell(tuple(means)))))
    return replace(table, columns=(*table.columns, "mean"), rows=tuple(rows))


def table_options(source: Path, target: str, domain: str, **named: Sequence[str]) -> dict[str, Any]:
    """Return the options of a file of one's own; its content is part of a run's identity."""
    return {
        **{"source": str(source.resolve()), "target": target, "domain": domain},
        **{name: list(values) for name, values in named.items() if values},
        "content": hashlib.sha256(source.read_bytes()).hexdigest(),
    }


def _own(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that the data set itself knows."""
    return {name: value for name, value in options.items() if name not in ("content", "new")}


def dataset_of(run: Run) -> Dataset:
    """Return the data of a run as numbers: tables encoded by their training domains, pictures as features."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EncodingWarning)  # it would be said again in every run
        return _as_numbers(load(run.dataset, random_state=run.seed, **_own(run.data)), run.data.get("new"))


def _as_numbers(dataset: Dataset, new: str | None) -> Dataset:
    if new is not None:
        others = [name for name in dataset.domain_names if name != new]
        dataset = dataset.with_roles(train=others, validate=(), test=[new])
    X = dataset.domains[0].X
    if isinstance(X, ImageSequence):
        from sfboost_lab.datasets.picture_features import with_features

        return with_features(dataset)
    if not hasattr(X, "columns"):
        return dataset
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EncodingWarning)  # it would be said again in every run
        return _standardised(encode(dataset))


def _standardised(dataset: Dataset) -> Dataset:
    """The columns of a table in their standard deviations of training: units would slow every solver down."""
    train = np.concatenate([dataset.xy(name)[0] for name in dataset.train])
    scaled = _scaling(train)
    return replace(dataset, domains=tuple(replace(one, X=scaled(one.X)) for one in dataset.domains))


def _scaling(train: Any) -> Callable[[Any], Any]:
    """Puts rows in standard deviations of these."""
    centre, scale = train.mean(axis=0), train.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return lambda X: (X - centre) / scale


def rows_of(run: Run, dataset: Dataset) -> RunRows:
    """Return the rows of a run: a fifth of each training domain held out, standardised for networks."""
    rng = np.random.default_rng(run.data_seed)
    kept, held = [], []
    for name in dataset.train:
        X, y = dataset.xy(name)
        order = rng.permutation(np.flatnonzero(y >= 0))
        cut = round(_HELD_OUT * len(order))
        kept.append(Place(name, X[np.sort(order[cut:])], y[np.sort(order[cut:])]))
        held.append(Place(name, X[np.sort(order[:cut])], y[np.sort(order[:cut])]))
    places = [_labelled(place_of(dataset, name, f"test-{name}")) for name in dataset.test]
    places += [replace(place, name=f"held/{place.name}") for place in held]
    train, validation = rows_at(kept), rows_at(held)
    if ".learned." not in TRAINERS.entries[run.trainer] or train.X.ndim != 2:
        return RunRows(train, validation, tuple(places))
    scaled = _scaling(train.X)
    return RunRows(
        replace(train, X=scaled(train.X)),
        replace(validation, X=scaled(validation.X)),
        tuple(replace(place, X=scaled(place.X)) for place in places),
    )


def _labelled(place: Place) -> Place:
    known = np.flatnonzero(place.y >= 0)
    return place if len(known) == len(place.y) else replace(place, X=place.X[known], y=place.y[known])


def measure(run: Run, session: Session) -> Measured:
    """Measure one run."""

    def dataset() -> Dataset:
        made: Dataset = session.latest("dataset", [run.data, run.seed], lambda: dataset_of(run))
        return made

    def fit(run: Run, session: Session, rows: RunRows) -> Predictor:
        if run.trainer == "sfb-columns" and dataset().stable_features is not None:
            known = {"stable": dataset().stable_features, "unstable": dataset().unstable_features}
            run = replace(run, hyper={**run.hyper, **known})
        return fit_by_contract(run, session, rows)

    return measure_run(run, session, lambda run: rows_of(run, dataset()), fit)
