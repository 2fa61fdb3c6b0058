"""Running a trainer and adapters on a data set; test labels are kept from whatever may not see them.

Without labelled access a method adapts to all rows of a test domain and is scored on them, as in the paper.
With labelled access half of the rows are handed over with their labels, and the other half is scored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing

from sfboost.datasets.contract import Dataset, Domain
from sfboost_lab.baselines.contract import (
    Adapter,
    LabelledRows,
    MostProbable,
    Predictor,
    TestAccess,
    Trainer,
)


@dataclass(frozen=True)
class Outcome:
    """One trained and adapted method in one test domain.

    Attributes
    ----------
    trainer, adapter : str
        Their names.
    domain : str
    test_access : {"none", "unlabelled", "labelled"}
        What the adapter saw of the test domain.
    accuracy : float
        On the scored rows.
    n_rows : int
        Rows scored.
    decision : str
        What an adapter that may refuse says it did; "" for the others.
    """

    trainer: str
    adapter: str
    domain: str
    test_access: TestAccess
    accuracy: float
    n_rows: int
    decision: str = ""

    @property
    def oracle(self) -> bool:
        """Whether labels of the test domain were used: to be marked ORACLE."""
        return self.test_access == "labelled"


@dataclass(frozen=True, eq=False)
class DomainRows:
    """What of a test domain goes where: rows shown with labels, rows scored (and shown without)."""

    seen: LabelledRows
    scored: LabelledRows


def rows_of(dataset: Dataset, names: Iterable[str]) -> LabelledRows | None:
    """Return the labelled rows of some domains, or None if there are no such domains.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> ac = load("ac", n_rows=10)
    >>> len(rows_of(ac, ac.train))
    20
    """
    names = tuple(names)
    if not names:
        return None
    X, y, domain = dataset.pooled(names)
    return _labelled(X, y, domain)


def _labelled(X: Any, y: npt.NDArray[Any], domain: npt.NDArray[Any]) -> LabelledRows:
    """Rows that have a label; -1 is none."""
    known = np.flatnonzero(y >= 0)
    if len(known) == len(y):
        return LabelledRows(X, y, domain)
    return LabelledRows(_safe_indexing(X, known), y[known], domain[known])


def domain_rows(domain: Domain, access: TestAccess, seed: int) -> DomainRows:
    """Divide a test domain by what the method may see: halves with labelled access, else all rows twice.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> domain = load("ac", n_rows=10).domain("test-0.1")
    >>> len(domain_rows(domain, "unlabelled", 0).scored), len(domain_rows(domain, "labelled", 0).scored)
    (10, 5)
    """
    rows = _labelled(domain.X, domain.y, np.repeat(domain.name, len(domain)))
    if access != "labelled":
        return DomainRows(rows, rows)
    order = np.random.default_rng([seed, 0x5EED]).permutation(len(rows))
    halves = np.sort(order[: len(rows) // 2]), np.sort(order[len(rows) // 2 :])
    seen, scored = (
        LabelledRows(_safe_indexing(rows.X, half), rows.y[half], rows.domain[half]) for half in halves
    )
    return DomainRows(seen, scored)


def fit(trainer: Trainer, dataset: Dataset, *, seed: int = 0) -> Predictor:
    """Train on the training domains.

    Examples
    --------
    >>> from sfboost_lab.baselines import TRAINERS
    >>> from sfboost_lab.datasets import load
    >>> fit(TRAINERS["pooled"](), load("ac", n_rows=100)).classes_
    array([0, 1])
    """
    train = rows_of(dataset, dataset.train)
    if train is None:
        raise ValueError(f"{dataset.name!r} has no training domains; give it roles with `with_roles`.")
    return trainer.fit(train, validation=rows_of(dataset, dataset.validate), seed=seed)


def adapt(predictor: Predictor, adapter: Adapter, test: DomainRows, *, seed: int = 0) -> Predictor:
    """Adapt to a test domain; labels are passed only to what declares labelled access.

    Examples
    --------
    >>> from sfboost_lab.baselines import ADAPTERS, TRAINERS
    >>> from sfboost_lab.datasets import load
    >>> ac = load("ac", n_rows=100)
    >>> rows = domain_rows(ac.domain("test-0.1"), "unlabelled", 0)
    >>> adapt(fit(TRAINERS["pooled"](), ac), ADAPTERS["t3a"](), rows).head.coef.shape
    (2, 2)
    """
    if adapter.test_access == "none":
        return adapter.adapt(predictor, None, seed=seed)
    if adapter.test_access == "unlabelled":
        return adapter.adapt(predictor, test.scored.X, seed=seed)
    return adapter.adapt(predictor, test.seen.X, test.seen.y, seed=seed)


def run(
    trainer: Trainer,
    adapters: Adapter | Iterable[Adapter],
    dataset: Dataset,
    *,
    seed: int = 0,
) -> list[Outcome]:
    """Train once and meet every test domain with every adapter.

    One forward pass over a domain serves all adapters that see the same of it.

    Parameters
    ----------
    trainer : Trainer
    adapters : Adapter or several
    dataset : Dataset
    seed : int

    Returns
    -------
    list of Outcome

    Examples
    --------
    >>> from sfboost_lab.baselines import ADAPTERS, TRAINERS
    >>> from sfboost_lab.datasets import load
    >>> outcome, = run(TRAINERS["pooled"](), ADAPTERS["none"](), load("ac"))
    >>> outcome.domain, outcome.test_access, outcome.accuracy < 0.2
    ('test-0.1', 'none', True)
    """
    several = list(adapters) if isinstance(adapters, Iterable) else [adapters]
    trained, outcomes = fit(trainer, dataset, seed=seed), []
    for name in dataset.test:
        cached: dict[bool, tuple[DomainRows, Cached]] = {}
        for adapter in several:
            labelled = adapter.test_access == "labelled"
            if labelled not in cached:
                rows = domain_rows(dataset.domain(name), adapter.test_access, seed)
                cached[labelled] = rows, Cached(trained, rows.scored.X)
            rows, source = cached[labelled]
            predictor = adapt(source, adapter, rows, seed=seed)
            right = predictor.predict(rows.scored.X) == rows.scored.y
            outcomes.append(
                Outcome(
                    trainer=trainer.name,
                    adapter=adapter.name,
                    domain=name,
                    test_access=adapter.test_access,
                    accuracy=float(np.mean(right)),
                    n_rows=len(right),
                    decision=str(getattr(predictor, "decision_", "")),
                )
            )
    return outcomes


class Cached(MostProbable):
    """A predictor that remembers what it made of one set of rows: one forward pass serves every adapter.

    Parameters
    ----------
    predictor : Predictor
    X : rows
        Recognised by identity; other rows are computed as usual.

    Examples
    --------
    >>> import numpy as np
    >>> from sfboost_lab.baselines.contract import FeaturePredictor, LinearHead
    >>> X = np.array([[1.0]])
    >>> cached = Cached(FeaturePredictor(np.array([0, 1]), LinearHead.of([[1.0]], [0.0])), X)
    >>> cached.features(X) is cached.features(X)
    True
    """

    def __init__(self, predictor: Predictor, X: Any) -> None:
        self._predictor = predictor
        self._X = X
        self._known: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self._predictor, name)
        if name not in ("features", "predict_proba", "stable_and_unstable"):
            return value

        def remembered(X: Any) -> Any:
            if X is not self._X:
                return value(X)
            if name not in self._known:
                self._known[name] = value(X)
            return self._known[name]

        return remembered
