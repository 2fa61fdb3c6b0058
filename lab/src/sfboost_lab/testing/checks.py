"""What every trainer and every adapter must do, as checks that raise AssertionError with a sentence.

Run them all with `check_trainer` and `check_adapter`, or one by one:

    @pytest.mark.parametrize("check", sfboost_lab.testing.TRAINER_CHECKS)
    def test_my_trainer(check):
        check(MyTrainer())

Every problem is run with two and with five classes. Nothing here needs torch or pytest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.datasets.contract import Dataset, Domain
from sfboost_lab.baselines.contract import ACCESS, Adapter, Floats, LabelledRows, Predictor, Trainer
from sfboost_lab.baselines.harness import DomainRows, adapt, domain_rows, fit
from sfboost_lab.baselines.pooled import PooledTrainer

N_FEATURES = 6


def example(n_classes: int = 2, n_rows: int = 120, seed: int = 0) -> Dataset:
    """Return a data set whose arrays cannot be written to.

    Three columns are stable. In the other three the class means are weaker in the second domain, and those of
    other classes in the test domain.

    Parameters
    ----------
    n_classes, n_rows, seed : int
        Classes; rows of each domain; seed.

    Examples
    --------
    >>> example(5).domain("test").X.shape
    (120, 6)
    """
    rng = np.random.default_rng([seed, n_classes])
    stable = rng.normal(size=(n_classes, 3))
    unstable = 2.0 * rng.normal(size=(n_classes, 3))
    domains = []
    for shift, name in enumerate(("first", "second", "test")):
        y = np.arange(n_rows) % n_classes
        means = np.hstack([stable[y], np.roll(unstable, shift // 2, axis=0)[y] * (1.0 - 0.5 * (shift == 1))])
        X = means + rng.normal(size=(n_rows, N_FEATURES)) * (1.0 + 0.5 * shift)
        X.setflags(write=False)
        y.setflags(write=False)
        domains.append(Domain(name, X, y))
    return Dataset(
        "example",
        tuple(domains),
        ("first", "second"),
        ("test",),
        classes=tuple(range(n_classes)),
        stable_features=[0, 1, 2],
        unstable_features=[3, 4, 5],
    )


def named_rows(dataset: Dataset) -> LabelledRows:
    """Return the training rows with words for labels.

    Examples
    --------
    >>> named_rows(example()).y[:2]
    array(['class 0', 'class 1'], dtype='<U7')
    """
    X, y, domain = dataset.pooled("train")
    labels = np.array([f"class {k}" for k in dataset.classes])[y]
    for values in (X, labels, domain):
        values.setflags(write=False)
    return LabelledRows(X, labels, domain)


N_CLASSES = (2, 5)
_RTOL, _ATOL = 1e-4, 1e-6  # a network computes one row and many with other rounding


def check_trainer(trainer: Trainer) -> None:
    """Run every check of a trainer.

    Parameters
    ----------
    trainer : Trainer

    Raises
    ------
    AssertionError
        With a sentence that says what does not hold.

    Examples
    --------
    >>> from sfboost_lab.baselines.pooled import PooledTrainer
    >>> check_trainer(PooledTrainer())
    """
    for check in TRAINER_CHECKS:
        check(trainer)


def check_adapter(adapter: Adapter, trainer: Trainer | None = None) -> None:
    """Run every check of an adapter on predictors that a trainer makes.

    Parameters
    ----------
    adapter : Adapter
    trainer : Trainer, optional
        Makes the predictors that are adapted; the pooled logistic regression by default.

    Raises
    ------
    AssertionError
        With a sentence that says what does not hold.

    Examples
    --------
    >>> from sfboost_lab.baselines.head_adapters import T3A
    >>> check_adapter(T3A())
    """
    for check in ADAPTER_CHECKS:
        check(adapter, trainer or PooledTrainer())


# -- trainers ---------------------------------------------------------------------------------------------


def trainer_declares_itself(trainer: Trainer) -> None:
    """Check that it has a name and a title."""
    _declared(trainer)


def trainer_is_deterministic(trainer: Trainer) -> None:
    """Check that the same rows and seed give the same predictor, and that no global random state moves."""
    for dataset in _problems():
        X = dataset.domain("test").X
        with _global_state_kept(trainer.title):
            first = fit(trainer, dataset, seed=3).predict_proba(X)
        second = fit(trainer, dataset, seed=3).predict_proba(X)
        assert _same(first, second), f"{trainer.title} gives two answers to the same rows and seed."


def trainer_leaves_its_inputs(trainer: Trainer) -> None:
    """Check that no array that is handed over is written to."""
    for dataset in _problems():
        before = _bytes(dataset)
        fit(trainer, dataset, seed=0)
        assert _bytes(dataset) == before, f"{trainer.title} writes to the rows it is given."


def trainer_knows_its_classes(trainer: Trainer) -> None:
    """Check that labels of any type come back, with one probability per class."""
    for dataset in _problems():
        rows = named_rows(dataset)
        X = dataset.domain("test").X
        predictor = trainer.fit(rows, seed=0)
        _sound(predictor, X, np.unique(rows.y), trainer.title)


def trainer_predicts_single_rows(trainer: Trainer) -> None:
    """Check that a batch of one gets the answer that it gets among many."""
    for dataset in _problems():
        predictor = fit(trainer, dataset, seed=0)
        _row_by_row(predictor, dataset.domain("test").X, trainer.title)


def trainer_head_reads_its_features(trainer: Trainer) -> None:
    """Check that features and head, if there is one, give the predicted probabilities."""
    for dataset in _problems():
        predictor, X = fit(trainer, dataset), dataset.domain("test").X
        _head_agrees(predictor, X, trainer.title)


# -- adapters ---------------------------------------------------------------------------------------------


def adapter_declares_itself(adapter: Adapter, trainer: Trainer) -> None:
    """Check that it has a name and a title, says what it may see, and whether it changes the head alone."""
    _declared(adapter)
    told = adapter.test_access in ACCESS
    assert told, f"{type(adapter).__name__}.test_access must be one of {ACCESS}."
    assert isinstance(adapter.head_only, bool), f"{adapter.title} must say head_only = True or False."


def adapter_is_deterministic(adapter: Adapter, trainer: Trainer) -> None:
    """Check that the same rows and seed give the same predictor, and that no global random state moves."""
    for source, rows in _sources(adapter, trainer):
        X = rows.scored.X
        with _global_state_kept(adapter.title):
            first = adapt(source, adapter, rows, seed=3).predict_proba(X)
        second = adapt(source, adapter, rows, seed=3).predict_proba(X)
        assert _same(first, second), f"{adapter.title} gives two answers to the same rows and seed."


def adapter_leaves_its_source(adapter: Adapter, trainer: Trainer) -> None:
    """Check that the source predicts as before, to the byte, and that the rows are not written to."""
    for source, rows in _sources(adapter, trainer):
        X = rows.scored.X
        before, written = source.predict_proba(X).copy(), np.asarray(X).tobytes()
        adapted = adapt(source, adapter, rows, seed=0)
        adapted.predict_proba(X)
        assert _same(source.predict_proba(X), before), f"{adapter.title} changes the predictor it adapts."
        assert np.asarray(X).tobytes() == written, f"{adapter.title} writes to the rows it is given."
        assert adapter.test_access == "none" or adapted is not source, f"{adapter.title} returns its source."


def adapter_knows_its_classes(adapter: Adapter, trainer: Trainer) -> None:
    """Check shapes, sums and classes of what is predicted."""
    for source, rows in _sources(adapter, trainer):
        _sound(adapt(source, adapter, rows), rows.scored.X, source.classes_, adapter.title)


def adapter_predicts_single_rows(adapter: Adapter, trainer: Trainer) -> None:
    """Check that after adapting a batch of one gets the answer that it gets among many."""
    for source, rows in _sources(adapter, trainer):
        _row_by_row(adapt(source, adapter, rows), rows.scored.X, adapter.title)


def adapter_works_from_cached_features(adapter: Adapter, trainer: Trainer) -> None:
    """Check that an adapter of the head alone gives the same head from cached features."""
    if not adapter.head_only:
        return
    for source, rows in _sources(adapter, trainer):
        shown = rows.seen if adapter.test_access == "labelled" else rows.scored
        y = np.searchsorted(source.classes_, shown.y) if adapter.test_access == "labelled" else None
        features = source.features(shown.X)
        head = adapter.adapt_features(source.head, features, y, seed=1)  # type: ignore[attr-defined]
        adapted = adapt(source, adapter, rows, seed=1)
        _head_agrees(adapted, rows.scored.X, adapter.title)
        assert adapted.head is not None
        assert _same(adapted.head.coef, head.coef), f"{adapter.title}: cached features give another head."


def adapter_sees_no_labels(adapter: Adapter, trainer: Trainer) -> None:
    """Check that, unless it declares labelled access, permuting the test labels changes no byte."""
    if adapter.test_access == "labelled":
        return
    for dataset in _problems():
        source, domain, answers = fit(trainer, dataset, seed=0), dataset.domain("test"), []
        for y in (domain.y, np.random.default_rng(1).permutation(domain.y)):
            rows = domain_rows(replace(domain, y=y), adapter.test_access, seed=0)
            answers.append(adapt(source, adapter, rows, seed=0).predict_proba(domain.X))
        assert _same(*answers), (
            f"{adapter.title} declares no labels, but its predictions change with the test labels."
        )


TRAINER_CHECKS: tuple[Callable[[Trainer], None], ...] = (
    trainer_declares_itself,
    trainer_is_deterministic,
    trainer_leaves_its_inputs,
    trainer_knows_its_classes,
    trainer_predicts_single_rows,
    trainer_head_reads_its_features,
)
"""Every check of a trainer; each takes the trainer."""

ADAPTER_CHECKS: tuple[Callable[[Adapter, Trainer], None], ...] = (
    adapter_declares_itself,
    adapter_is_deterministic,
    adapter_leaves_its_source,
    adapter_knows_its_classes,
    adapter_predicts_single_rows,
    adapter_works_from_cached_features,
    adapter_sees_no_labels,
)
"""Every check of an adapter; each takes the adapter and a trainer that makes its predictors."""


# -- what the checks share --------------------------------------------------------------------------------


def _problems() -> Iterator[Dataset]:
    for n_classes in N_CLASSES:
        yield example(n_classes)


def _sources(adapter: Adapter, trainer: Trainer) -> Iterator[tuple[Predictor, DomainRows]]:
    for dataset in _problems():
        yield fit(trainer, dataset, seed=0), domain_rows(dataset.domain("test"), adapter.test_access, seed=0)


def _declared(method: Trainer | Adapter) -> None:
    kind = type(method).__name__
    for attribute in ("name", "title"):
        value = getattr(method, attribute, None)
        named = isinstance(value, str) and value != ""
        assert named, f"{kind} needs a {attribute}, a word for lists and tables."


def _sound(predictor: Predictor, X: Any, classes: npt.NDArray[Any], who: str) -> None:
    proba = predictor.predict_proba(X)
    assert list(predictor.classes_) == list(classes), f"{who}: classes_ must be the sorted labels."
    assert proba.shape == (len(X), len(classes)), f"{who}: predict_proba has shape {proba.shape}."
    assert (proba >= 0).all(), f"{who}: probabilities must be finite, from 0 on."
    assert np.allclose(proba.sum(axis=1), 1.0), f"{who}: probabilities of a row must sum to one."
    predicted = predictor.classes_[proba.argmax(axis=1)]
    assert (predictor.predict(X) == predicted).all(), f"{who}: predict must be the most probable class."


def _row_by_row(predictor: Predictor, X: Any, who: str) -> None:
    whole = predictor.predict_proba(X)
    for i in (0, 1, len(X) - 1):
        alone = predictor.predict_proba(X[i : i + 1])[0]
        assert np.allclose(alone, whole[i], _RTOL, _ATOL), f"{who}: row {i} alone gets another answer."


def _head_agrees(predictor: Predictor, X: Any, who: str) -> None:
    features = predictor.features(X)
    shaped = features.ndim == 2 and len(features) == len(X)
    assert shaped, f"{who}: features need the shape (n, d)."
    if predictor.head is None:
        return
    rows = predictor.head.coef.shape[0]
    assert rows == len(predictor.classes_), f"{who}: the head needs one row per class, it has {rows}."
    same = np.allclose(predictor.head.proba(features), predictor.predict_proba(X), _RTOL, _ATOL)
    assert same, f"{who}: head and features do not give predict_proba."


def _bytes(dataset: Dataset) -> list[bytes]:
    return [np.asarray(part).tobytes() for domain in dataset.domains for part in (domain.X, domain.y)]


def _same(first: Floats, second: Floats) -> bool:
    return np.asarray(first).tobytes() == np.asarray(second).tobytes()


@contextmanager
def _global_state_kept(who: str) -> Iterator[None]:
    """The random states that the whole program shares are as before."""
    torch = sys.modules.get("torch")
    before = _numpy_state()
    before_torch = None if torch is None else torch.get_rng_state()
    yield
    assert _numpy_state() == before, f"{who} moves numpy's global random state."
    if torch is not None:
        assert torch.equal(torch.get_rng_state(), before_torch), f"{who} moves torch's global random state."


def _numpy_state() -> tuple[Any, ...]:
    """The whole of it: the key alone changes once in 624 draws, the position at each."""
    _, key, *rest = np.random.get_state()  # noqa: NPY002
    return (np.asarray(key).tobytes(), *rest)
