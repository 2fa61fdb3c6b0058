"""How a run is measured: train or take what is trained, adapt to every place without its labels, score."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import logsumexp

from sfboost.boosting.metrics import score_predictions
from sfboost.calibration import fit_temperature, reliability_curve
from sfboost_lab.baselines import ADAPTERS, TRAINERS
from sfboost_lab.baselines.contract import LabelledRows, Predictor
from sfboost_lab.baselines.harness import Cached
from sfboost_lab.baselines.paper import temperature_of
from sfboost_lab.experiments.grouped_runs import Session
from sfboost_lab.experiments.measured_domains import Place, RunRows, stress_places
from sfboost_lab.experiments.record import Measured
from sfboost_lab.experiments.run import Run

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
        calibration=_calibration(predictor, rows, {p.name: c for p, c in places}),
        diagnostics={
            **_facts(predictor),
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


def _calibration(predictor: Predictor, rows: RunRows, cached: Mapping[str, Any]) -> dict[str, Any]:
    """Temperature by validation rows, and the calibration error at each place before and after it.

    A predictor that was scaled already says by how much, and "before" undoes it.
    """
    validation = rows.validation
    if validation is None or len(np.unique(validation.y)) < 2:
        return {}
    own = fitted = temperature_of(predictor)
    logits = own * np.log(np.maximum(predictor.predict_proba(validation.X), 1e-12))
    if own == 1.0:
        fitted = fit_temperature(logits, validation.y, domain=validation.domain).temperature
    errors: dict[str, dict[str, float]] = {"ece_before": {}, "ece_after": {}}
    for place in rows.places:
        raw = own * np.log(np.maximum(cached[place.name].predict_proba(place.X), 1e-12))
        for name, temperature in (("ece_before", 1.0), ("ece_after", fitted)):
            errors[name][place.name] = reliability_curve(_softmax(raw / temperature), place.y).ece
    return {"temperature": fitted, **errors}


def _softmax(logits: Any) -> Any:
    return np.exp(logits - logsumexp(logits, axis=1, keepdims=True))


def _facts(predictor: Predictor) -> dict[str, Any]:
    return dict(getattr(predictor, "facts", {}))


def _tuned(run: Run, adapter: Any) -> dict[str, Any]:
    grid = run.adapter_hyper.get("tuned")
    return {"tuned": {name: getattr(adapter, name) for name in grid}} if grid else {}
