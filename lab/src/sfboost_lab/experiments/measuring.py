"""How a run is measured: train or take what is trained, adapt to every place without its labels, score.

Places have names that the rules know. "test-0.1" and the like are reported. "validate…", "held/…" (rows of
training domains that were not trained on), "stress/…", "left-out/…" and "oracle/…" are where hyper-parameters
are chosen; every method is adapted there without labels, as it is in the test domain.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.boosting.metrics import score_predictions
from sfboost.datasets import Dataset
from sfboost.diagnostics.unstable_guess import unstable_guess
from sfboost_lab.baselines import ADAPTERS, TRAINERS
from sfboost_lab.baselines.contract import LabelledRows, Predictor
from sfboost_lab.baselines.harness import Cached
from sfboost_lab.baselines.sfb import temperature_of
from sfboost_lab.baselines.stress import stress_domains
from sfboost_lab.experiments.engines import Session
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.store import Measured


def trainer_hyper(name: str, dataset: str, **changes: Any) -> dict[str, Any]:
    """Return every hyper-parameter of a trainer: published settings of the data set, then the changes.

    All of them are part of a run's identity, so that a default that changes one day makes another run.

    Examples
    --------
    >>> trainer_hyper("pooled", "ac")
    {'estimator': None}
    """
    return asdict(TRAINERS[name].preset(dataset, **changes))


def adapter_hyper(name: str, dataset: str, **changes: Any) -> dict[str, Any]:
    """Return every hyper-parameter of an adapter.

    Examples
    --------
    >>> adapter_hyper("t3a", "ac")
    {'filter_size': 100}
    """
    return asdict(ADAPTERS[name].preset(dataset, **changes))


def tuned(hyper: Mapping[str, Any], on: str, **grid: Sequence[Any]) -> dict[str, Any]:
    """Return hyper-parameters of which some are chosen within the run, blind, on places of this prefix.

    Examples
    --------
    >>> tuned({"steps": 20, "rounds": 1}, "validate", steps=[1, 2])
    {'rounds': 1, 'tuned': {'steps': [1, 2]}, 'tuned_on': 'validate'}
    """
    fixed = {name: value for name, value in hyper.items() if name not in grid}
    return {**fixed, "tuned": {name: list(values) for name, values in grid.items()}, "tuned_on": on}


@dataclass(frozen=True, eq=False)
class Place:
    """Rows of one place; the labels are for scoring, and for methods that declare labelled access.

    Examples
    --------
    >>> Place("test-0.1", np.zeros((2, 1)), np.array([0, 1])).chooses
    False
    """

    name: str
    X: Any
    y: npt.NDArray[np.intp]

    @property
    def chooses(self) -> bool:
        """Whether the place serves a rule of choice rather than the report."""
        return not self.name.startswith("test")


@dataclass(frozen=True, eq=False)
class RunRows:
    """All rows of a run.

    Parameters
    ----------
    train : LabelledRows
    validation : LabelledRows, optional
        Labelled rows that trainers may calibrate on. Rows of a training domain carry its name.
    places : tuple of Place
    pool : LabelledRows, optional
        Labelled rows that were not trained on, for stress domains.
    """

    train: LabelledRows
    validation: LabelledRows | None
    places: tuple[Place, ...]
    pool: LabelledRows | None = None

    def without(self, domain: str) -> RunRows:
        """The same without any row of one training domain, which becomes the only place."""
        here = self.train.domain == domain
        if not here.any():
            raise ValueError(f"No training domain {domain!r}; there are {sorted(set(self.train.domain))}.")
        return RunRows(
            _dropped(self.train, domain),
            None if self.validation is None else _dropped(self.validation, domain),
            (Place(f"left-out/{domain}", self.train.X[here], self.train.y[here]),),
        )


def _dropped(rows: LabelledRows, domain: str) -> LabelledRows:
    kept = rows.domain != domain
    return LabelledRows(rows.X[kept], rows.y[kept], rows.domain[kept])


def place_of(dataset: Dataset, domain: str, name: str | None = None) -> Place:
    """Return a domain as a place, under another name if one is given.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> place_of(load("ac"), "test-0.1", "oracle/test-0.1").name
    'oracle/test-0.1'
    """
    X, y = dataset.xy(domain)
    return Place(name or domain, X, y)


def rows_at(places: Sequence[Place]) -> LabelledRows:
    """Return the rows of places, one below the other; each is a domain."""
    domain = np.repeat([place.name for place in places], [len(place.y) for place in places])
    return LabelledRows(np.concatenate([p.X for p in places]), np.concatenate([p.y for p in places]), domain)


def labelled(dataset: Dataset, domains: Iterable[str], names: Iterable[str] | None = None) -> LabelledRows:
    """Return labelled rows of some domains, under other names if these are given.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> len(labelled(load("ac", n_rows=5), ["test-0.1"]))
    5
    """
    domains = list(domains)
    X, y, domain = dataset.pooled(domains)
    if names is not None:
        domain = np.repeat(list(names), [len(dataset.domain(name)) for name in domains])
    return LabelledRows(X, y, domain)


def stress_places(pool: LabelledRows | None, predictor: Predictor, n_rows: int | None = None) -> list[Place]:
    """Return labelled rows resampled to other meanings of the predictor's unstable features.

    There are none where the predictor has no unstable features, or where these guess one class only.
    """
    if pool is None or not hasattr(predictor, "stable_and_unstable"):
        return []
    unstable = predictor.stable_and_unstable(pool.X)[1]
    try:
        guess = unstable_guess(unstable, pool.y, pool.domain)
        made = stress_domains(pool.y, guess, n_rows=n_rows)
    except ValueError:
        return []
    return [Place(f"stress/{s.agreement:g}", pool.X[s.rows], pool.y[s.rows]) for s in made]


Fit = Callable[[Run, Session, RunRows], Predictor]


def measure_run(
    run: Run,
    session: Session,
    load: Callable[[Run], RunRows],
    fit: Fit,
    *,
    stress_rows: int | None = None,
) -> Measured:
    """Measure one run.

    Parameters
    ----------
    run : Run
    session : Session
    load : callable
        ``load(run)`` returns the rows; called once per data set, options and seed.
    fit : callable
        ``fit(run, session, rows)`` returns the trained predictor; called once per trained model.
    stress_rows : int, optional
        Rows per stress domain.
    """
    start = time.perf_counter()
    rows: RunRows = session.latest("rows", [run.dataset, run.data, run.seed], lambda: load(run))
    if run.left_out is not None:
        rows = rows.without(run.left_out)
    loaded = time.perf_counter()
    predictor: Predictor = session.once(["model", run.training()], lambda: fit(run, session, rows))
    trained = time.perf_counter()
    places = session.latest("places", ["places", run.training()], lambda: _seen(predictor, rows, stress_rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a method warns of is in its decision, and in the record
        adapter = make_adapter(run, predictor, rows)
        metrics, decisions = {}, {}
        for place, cached in places:
            adapted, scored = _adapt(adapter, cached, place, run.own_seed)
            metrics[place.name] = score_predictions(scored.y, adapted.predict_proba(scored.X))
            decision = getattr(adapted, "decision_", None)
            if decision is not None and not place.chooses:
                decisions[place.name] = str(decision)
    done = time.perf_counter()
    return Measured(
        metrics,
        calibration={"temperature": temperature_of(predictor)},
        diagnostics={
            **getattr(predictor, "facts", {}),
            **_tuned(run, adapter),
            **({"decision": decisions} if decisions else {}),
        },
        timings={"rows": loaded - start, "training": trained - loaded, "adapting": done - trained},
        precision=str(getattr(predictor, "precision", "float32")),
        test_access=adapter.test_access,
        trained_on=tuple(sorted(map(str, set(rows.train.domain)))),
    )


def fit_by_contract(run: Run, session: Session, rows: RunRows) -> Predictor:
    """Train by the run's trainer; steps of empirical risk that come first are shared by all penalties."""
    trainer = TRAINERS[run.trainer](**run.hyper)
    options: dict[str, Any] = {"validation": rows.validation, "seed": run.training_seed}
    if hasattr(trainer, "pretrain") and trainer.pretrain_steps:
        options["start"] = _pretrained(run, session, trainer, rows.train)
    predictor: Predictor = trainer.fit(rows.train, **options)
    return predictor


def _pretrained(run: Run, session: Session, trainer: Any, train: LabelledRows) -> Any:
    """Weights after empirical risk: from the cache, by a seed that knows nothing of the penalty."""
    import torch

    from sfboost_lab.baselines.learned.generalisation import ERMTrainer, Pretrained

    recipe = trainer._recipe(run.training_seed)
    own = {name: value for name, value in recipe.items() if name != "seed"}
    seed = run.pretraining_seed(own["network"], own)
    key = ["pretraining", run.dataset, run.data, run.left_out, own, run.seed]

    def make() -> dict[str, Any]:
        made = ERMTrainer(**own).pretrain(train, seed=seed)
        return {name: value.float().numpy() for name, value in made.tensors.items()}

    tensors = {name: torch.from_numpy(value) for name, value in session.arrays(key, make).items()}
    # The weights are shared, what follows is the run's own.
    return Pretrained(tensors, recipe)


def make_adapter(run: Run, predictor: Predictor, rows: RunRows) -> Any:
    """Return the run's adapter; what is `tuned` is chosen on its places by accuracy, then by log loss."""
    given = dict(run.adapter_hyper)
    grid, on = given.pop("tuned", None), given.pop("tuned_on", "")
    kind = ADAPTERS[run.adapter]
    if grid is None:
        return kind(**given)
    places = [(p, Cached(predictor, p.X)) for p in rows.places if p.name.startswith(on)]
    scored = []
    for number, values in enumerate(itertools.product(*grid.values())):
        adapter = kind(**given, **dict(zip(grid, values, strict=True)))
        scores = [_score(adapter, cached, place, run.own_seed) for place, cached in places]
        mean = {name: float(np.mean([s[name] for s in scores])) for name in ("accuracy", "log_loss")}
        scored.append((-round(mean["accuracy"], 3), mean["log_loss"], number, adapter))
    return min(scored, key=lambda entry: entry[:3])[3]


def _score(adapter: Any, predictor: Any, place: Place, seed: int) -> Mapping[str, float]:
    adapted, scored = _adapt(adapter, predictor, place, seed)
    return score_predictions(scored.y, adapted.predict_proba(scored.X))


def _adapt(adapter: Any, predictor: Any, place: Place, seed: int) -> tuple[Predictor, Place]:
    """The adapted predictor and the rows it is scored on: with labelled access, those it has not seen."""
    if adapter.test_access == "none":
        return predictor, place
    if adapter.test_access == "unlabelled":
        return adapter.adapt(predictor, place.X, seed=seed), place
    order = np.random.default_rng(seed).permutation(len(place.y))
    seen, scored = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    adapted = adapter.adapt(predictor, place.X[seen], place.y[seen], seed=seed)
    return adapted, Place(place.name, place.X[scored], place.y[scored])


def _seen(predictor: Predictor, rows: RunRows, stress_rows: int | None) -> list[tuple[Place, Any]]:
    """Every place with a predictor that remembers what it makes of its rows: one forward pass serves all."""
    places = [*rows.places, *stress_places(rows.pool, predictor, stress_rows)]
    return [(place, Cached(predictor, place.X)) for place in places]


def _tuned(run: Run, adapter: Any) -> dict[str, Any]:
    grid = run.adapter_hyper.get("tuned")
    return {"tuned": {name: getattr(adapter, name) for name in grid}} if grid else {}
