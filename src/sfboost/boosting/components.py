"""Embeddings: no column is stable by itself, and all of them together nearly are.

f_S reads every column, as sure of itself as it may be in a domain that it has not seen. What adapts are a few
directions in which the new domain's own rows vary most. The theorem does not cover this, since both parts
read the same columns: source domains, each left out in turn, say whether it helps, and along how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing

from sfboost.adaptation.decision import unwarned
from sfboost.adaptation.engine import adapt_rows
from sfboost.adaptation.scores import Yardstick
from sfboost.adaptation.settings import Settings
from sfboost.adaptation.training import Training
from sfboost.boosting.columns import Columns
from sfboost.boosting.rows import Splits
from sfboost.calibration import Temperature, fit_temperature
from sfboost.diagnostics.rows import rows_by_domain
from sfboost.frames import Encoder
from sfboost.marginal.probabilities import FloatArray, IntArray

#: `unstable_features` that says so.
COMPONENTS = "components"
NOT_APART = "components and the stable predictor read the same columns: score source domains with `evaluate`"

# Directions that source domains choose among; the second where none can be left out.
_NUMBERS = (4, 8, 16)
# Inverse penalties of logistic regression, in units of one over the mean variance of a column: from the
# strongest on, until one is worse.
_STRENGTHS = (3e-4, 3e-3, 3e-2, 0.3, 3.0)
# Accuracies that differ by less are equal, and the log loss decides.
_TOLERANCE = 0.005
# Nats of log loss: a weaker penalty must be worth it.
_LEAST_GAIN = 0.002
_NEVER = -50.0


@dataclass(frozen=True, eq=False)
class Directions(Columns):
    """Unstable features that are directions of some rows. No column is theirs alone.

    Attributes
    ----------
    columns : Columns
        What the rows are made of.
    mean, rotation : arrays of shape (d,) and (d, n)
    """

    columns: Columns = field(kw_only=True)
    mean: FloatArray = field(kw_only=True)
    rotation: FloatArray = field(kw_only=True)

    @classmethod
    def of(cls, columns: Columns, X: Any, n_directions: int, seed: int | None = 0) -> Directions:
        """The leading principal components of rows; no more than there are rows or columns."""
        rows = columns.take(X)
        found = PCA(min(n_directions, *rows.shape), random_state=seed).fit(rows)
        mean, rotation = (np.asarray(part, dtype=np.float64) for part in (found.mean_, found.components_.T))
        names = tuple(f"component {k + 1}" for k in range(rotation.shape[1]))
        return cls((), names, columns.encoder, columns=columns, mean=mean, rotation=rotation)

    def take(self, X: Any) -> FloatArray:
        """Rows of X along the directions."""
        return np.asarray(self.columns.take(X) @ self.rotation - self.mean @ self.rotation)

    @property
    def sources(self) -> tuple[str, ...]:
        """None: they are the stable columns'."""
        return ()

    def lacking(self, X: Any) -> list[str]:
        """None: the stable columns say what a frame lacks."""
        return []

    def encoded_by(self, encoder: Encoder) -> Directions:
        """The same directions of columns that `encoder` reads."""
        columns = self.columns.encoded_by(encoder)
        return replace(self, encoder=columns.encoder, columns=columns)


@dataclass(frozen=True, eq=False)
class PlayedComponents:
    """What source domains, each left out in turn, gain by adapting along components without labels.

    Attributes
    ----------
    domains : tuple
        Those that could be left out.
    numbers : tuple of int
        Directions tried.
    worth, log_loss : arrays of shape (1 + numbers, domains)
        Of f_S, then along each number of directions (scaled as below): what decides, where more is better,
        and what does where that is equal.
    temperature : Temperature
        Of the adapted answer along the chosen number: both parts read the same columns, and together they
        would be too sure.
    metric : str
        By what the number is chosen, and whether it helps.
    """

    domains: tuple[Any, ...]
    numbers: tuple[int, ...]
    worth: FloatArray
    log_loss: FloatArray
    temperature: Temperature
    metric: str = "accuracy"

    @property
    def judged(self) -> FloatArray:
        """What decides, in domains in which it can be told."""
        return self.worth[:, ~np.isnan(self.worth).any(axis=0)]

    @property
    def chosen(self) -> int:
        """The number that was best in the mean, each domain counting the same."""
        if not self.judged.size:
            return _NUMBERS[1]
        worth, loss = self.judged[1:].mean(axis=1), self.log_loss[1:].mean(axis=1)
        tied = worth >= worth.max() - _TOLERANCE
        return self.numbers[int(np.argmin(np.where(tied, loss, np.inf)))]

    @property
    def gain(self) -> float:
        """What it adds to f_S in the mean."""
        row = 1 + self.numbers.index(self.chosen)
        return float((self.judged[row] - self.judged[0]).mean()) if self.judged.size else 0.0

    @property
    def helps(self) -> bool:
        """Whether source domains gain by it."""
        return self.gain > 0.0

    @property
    def reason(self) -> str:
        """In one sentence."""
        if not self.domains:
            return "no source domain could be left out to see whether adapting along components helps"
        done = "gained" if self.helps else "did not gain"
        return (
            f"{len(self.domains)} source domains, each left out with its labels hidden, {done} by adapting "
            f"along {self.chosen} components ({Yardstick(self.metric).told(self.gain, sign='+')} in the mean)"
        )


def domain_splits(y: IntArray, domain: npt.NDArray[Any], most: int) -> Splits:
    """Rows of all but a group of domains, and of that group; none of classes that the others lack."""
    places = rows_by_domain(domain)
    splits = []
    for first in range(min(most, len(places))):
        outside = np.concatenate([rows for _, rows in places[first::most]])
        inside = np.setdiff1d(np.arange(len(y)), outside)
        outside = np.sort(outside[np.isin(y[outside], y[inside])])
        if len(np.unique(y[inside])) > 1 and len(outside):
            splits.append((inside, outside))
    return splits


def tuned_regression(
    X: Any,
    y: IntArray,
    domain: npt.NDArray[Any],
    splits: Splits,
    weight: FloatArray | None = None,
    n_jobs: int | None = None,
) -> tuple[LogisticRegression, float]:
    """Logistic regression, not fitted, with the penalty that suits domains that it has not seen; its loss.

    The columns are of one kind, as those of a network are, and are not standardised.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of int of shape (n,)
    domain : array of shape (n,)
    splits : list of pairs of arrays
        Rows to fit to, and rows to judge by.
    weight : array of shape (n,), optional
    n_jobs : int, optional
    """
    spread = float(np.asarray(X[:5000].toarray() if hasattr(X, "toarray") else X[:5000]).var(axis=0).mean())
    regressions = [LogisticRegression(C=s / max(spread, 1e-12), max_iter=1000) for s in _STRENGTHS]
    best, least = regressions[1], np.inf
    for learner in regressions if splits else ():
        said = Parallel(n_jobs=n_jobs)(
            delayed(_left_out)(learner, X, y, weight, inside, outside) for inside, outside in splits
        )
        rows = np.concatenate([outside for _, outside in splits])
        log_proba = np.concatenate(said)
        part = None if weight is None else weight[rows]
        scaling = fit_temperature(log_proba, y[rows], domain=domain[rows].astype(str), sample_weight=part)
        lost = -scaling.apply(log_proba)[np.arange(len(rows)), y[rows]]
        loss = float(np.mean([lost[here].mean() for _, here in rows_by_domain(domain[rows])]))
        if loss > least - _LEAST_GAIN:
            break
        best, least = learner, loss
    return best, least


def _left_out(
    learner: LogisticRegression,
    X: Any,
    y: IntArray,
    weight: FloatArray | None,
    inside: IntArray,
    outside: IntArray,
) -> FloatArray:
    fitted = clone(learner).fit(
        _safe_indexing(X, inside), y[inside], None if weight is None else weight[inside]
    )
    log_proba = np.full((len(outside), int(y.max()) + 1), _NEVER)
    log_proba[:, fitted.classes_] = fitted.predict_log_proba(_safe_indexing(X, outside))
    return log_proba


def play_components(
    columns: Columns,
    X: Any,
    y: IntArray,
    log_stable: FloatArray,
    held_out: IntArray,
    domain: npt.NDArray[Any],
    choices: Settings,
    source_prior: FloatArray | None,
    seed: int | None = 0,
) -> PlayedComponents:
    """Adapt to every source domain along its components, by an f_S that has not seen it, and score.

    Parameters
    ----------
    columns : Columns
        That f_S reads.
    X, y, domain : all training rows
    log_stable : array of shape (m, K)
        Calibrated, of the rows at `held_out`, each by an f_S that was trained without its domain.
    choices : Settings
        How a head is fitted.
    source_prior : array of shape (K,)
        Class shares, for transport="likelihood".
    """
    if not len(held_out):
        return PlayedComponents((), _NUMBERS, np.zeros((4, 0)), np.zeros((4, 0)), Temperature())
    known, where, truth = Training(source_prior=source_prior), domain[held_out], y[held_out]
    said = [log_stable, *(np.array(log_stable) for _ in _NUMBERS)]
    for _, rows in rows_by_domain(where):
        if len(rows) < 2:
            continue
        here, stable = _safe_indexing(X, held_out[rows]), np.exp(log_stable[rows])
        every = Directions.of(columns, here, max(_NUMBERS), seed).take(here)
        for k, number in enumerate(_NUMBERS, start=1):
            along = every[:, :number]
            with unwarned():
                adapted = adapt_rows(stable, along, choices, training=known)
            said[k][rows] = adapted.predict_log_proba(stable, along)
    names = where.astype(str)
    # Both parts read the same columns, so that together they are too sure.
    scalings = [Temperature(), *(fit_temperature(log_proba, truth, domain=names) for log_proba in said[1:])]
    said = [scaling.apply(log_proba) for scaling, log_proba in zip(scalings, said, strict=True)]
    parts = rows_by_domain(where)
    loss = [[_loss(said_here[rows], truth[rows]) for _, rows in parts] for said_here in said]
    by = choices.yardstick("accuracy")
    worth = [[_worth(said_here[rows], truth[rows], by) for _, rows in parts] for said_here in said]
    domains = tuple(name for name, _ in parts)
    played = PlayedComponents(domains, _NUMBERS, np.array(worth), np.array(loss), Temperature(), by.metric)
    return replace(played, temperature=scalings[1 + _NUMBERS.index(played.chosen)])


def _worth(log_proba: FloatArray, y: IntArray, by: Yardstick) -> float:
    label = np.eye(log_proba.shape[1])[y] / len(y)
    return 1.0 - by.loss(np.exp(log_proba), label)


def _loss(log_proba: FloatArray, y: IntArray) -> float:
    return float(-log_proba[np.arange(len(y)), y].mean())


def used_rows(X: Any, sample_weight: Sequence[float] | None) -> Any:
    """Rows whose weight is not zero."""
    if sample_weight is None:
        return X
    return _safe_indexing(X, np.flatnonzero(np.asarray(sample_weight, dtype=np.float64) > 0))
