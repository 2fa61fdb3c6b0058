"""The L2 penalty of the head, chosen without labels by cross-fitted likelihood.

Heads with more parameters than rows can carry are shrunk until they can, if what is left tells something: a
penalty leaves a head fewer parameters than it has. At f_U ≡ p the information of a row in its logits is
Cov(f_S), so that an eigenvalue σ of the features' covariance and an eigenvalue c of Cov(f_S) count as
c σ / (c σ + l2) of a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.optimize import brentq

from sfboost.adaptation.decision import LABELS_PER_PARAMETER, Amount
from sfboost.adaptation.fitting import fit_unstable
from sfboost.adaptation.problem import Problem
from sfboost.adaptation.row_sample import draw_rows
from sfboost.adaptation.settings import Settings
from sfboost.heads.linear import NARROW, LinearFit
from sfboost.heads.whitening import Whitening
from sfboost.marginal import log_likelihood_rows
from sfboost.marginal.probabilities import FloatArray, IntArray

#: Candidate penalties in units of one row: l2 = strength / n. Never zero: ℓ may be unbounded else.
STRENGTHS = (0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
_FOLDS = 3
# Enough rows to rank penalties; beyond them the choice hardly matters and the time does.
_MOST_ROWS = 10_000
_MOST_VALUES = 2_000_000
# Ranking penalties needs fewer digits than the final fit.
_TOLERANCE = 1e-4
# Standard errors of the difference by which a penalty is worse than a stronger one.
_CLEARLY = 2.0
# Wider matrices are taken for uncorrelated columns, which leaves the most parameters.
_MOST_EIGENVALUES = 2000
# Penalties of a head that is shrunk, in units of the least one that the rows can carry.
_STRONGER = (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)


@dataclass(frozen=True, eq=False)
class CrossFit:
    """ℓ on rows that the head was not fitted to.

    Attributes
    ----------
    l2 : float
        The chosen penalty, for all rows.
    gain : float
        Mean held-out ℓ per row at the chosen penalty: how much X_U tells about X_S, in nats. Zero or
        less means that there is nothing to gain.
    standard_error : float
    n_rows : int
        Rows that were used.
    strengths, gains : tuples of float
        The candidates tried (l2 times rows) and the mean held-out ℓ of each.
    """

    l2: float
    gain: float
    standard_error: float
    n_rows: int
    strengths: tuple[float, ...]
    gains: tuple[float, ...]

    @property
    def convincing(self) -> bool:
        """Whether the gain exceeds zero by 1.64 standard errors (one-sided 5 %)."""
        return self.gain > 1.64 * self.standard_error


def cross_fit(problem: Problem, settings: Settings, strengths: tuple[float, ...] = STRENGTHS) -> CrossFit:
    """Choose the penalty (unless it is given) and estimate ℓ, on at most 10 000 rows.

    Labels would say which penalty predicts best; ℓ on rows that were held out says it without them.
    `strengths` are the penalties to try; of equally good ones the strongest is taken.

    References
    ----------
    .. [1] M. Stone (1974). Cross-Validatory Choice and Assessment of Statistical Predictions. Journal
       of the Royal Statistical Society B 36.
    """
    total = float(problem.weight.sum())
    most = _most_rows(problem.X.shape[1], problem.n_classes)
    if len(problem.stable) > most:
        problem = problem.take(draw_rows(problem.keys, most, settings.random_state))
    problem = replace(problem, raw=None)
    rng = np.random.default_rng(settings.random_state)
    rows = _in_own_order(problem, rng)
    folds = rng.permutation(len(rows)) % _FOLDS
    rows = rows[np.argsort(folds, kind="stable")]
    edges = [0, *np.cumsum(np.bincount(folds, minlength=_FOLDS)).tolist()]
    # The first fold stands at the end too, so that all rows but any one fold's are one slice.
    ring = problem.take(np.concatenate([rows, rows[: edges[1]]]))
    part = ring.take(slice(0, len(rows)))
    n = float(part.weight.sum())
    tries = strengths if settings.l2 == "auto" else (settings.l2 * total,)
    share = part.weight / n
    # From the strongest penalty on, until one is clearly too weak: the weaker, the slower and the worse.
    tried: list[FloatArray] = []
    for scores in _held_out(ring, part, settings, [strength / n for strength in reversed(tries)], edges):
        tried.insert(0, scores)
        best = max(tried, key=lambda scores: float(share @ scores))
        worse, error = mean_and_error(best - scores, share)
        if worse > _CLEARLY * error:
            break
    tries = tries[len(tries) - len(tried) :]
    means, errors = zip(*(mean_and_error(scores, share) for scores in tried), strict=True)
    chosen = len(means) - 1 - int(np.argmax(means[::-1]))
    l2 = tries[chosen] / total
    return CrossFit(l2, means[chosen], errors[chosen], len(rows), tries, means)


def mean_and_error(values: FloatArray, share: FloatArray) -> tuple[float, float]:
    """Weighted mean of independent rows, and its standard error."""
    mean = float(share @ values)
    spread = float(share @ (values - mean) ** 2)
    return mean, float(np.sqrt(spread * float(share @ share)))


def _most_rows(n_features: int, n_classes: int) -> int:
    """So many rows rank penalties well enough."""
    return max(2000, min(_MOST_ROWS, _MOST_VALUES // ((n_features + 1) * n_classes)))


def _in_own_order(problem: Problem, rng: np.random.Generator) -> IntArray:
    """The rows in an order that is theirs and not the table's.

    Where ℓ is flat another assignment to folds is another penalty: a table and the same table sorted must
    get the same one. Rows are ordered by a random linear function of all that is known of them.
    """
    content = np.column_stack([problem.stable, problem.known, problem.weight])
    key = content @ rng.normal(size=content.shape[1]) + problem.X @ rng.normal(size=problem.X.shape[1])
    return np.argsort(key, kind="stable")


def _held_out(
    ring: Problem, part: Problem, settings: Settings, penalties: list[float], edges: list[int]
) -> Iterator[FloatArray]:
    """ℓ of each row of `part` under a head fitted without the row's fold, one penalty after the other.

    Each fit starts from the one with the penalty before. A row is judged with the prior of all rows.
    """
    n_rows = len(part.stable)
    # Two rows fill two of the folds.
    outside = [slice(first, last) for first, last in pairwise(edges) if last > first]
    after = [fold.stop % n_rows for fold in outside]
    inside = [
        ring.take(slice(first, first + n_rows - (fold.stop - fold.start)))
        for first, fold in zip(after, outside, strict=True)
    ]
    whitening = Whitening.of(part.X, part.weight) if part.X.shape[1] > NARROW else None
    starts: list[LinearFit | None] = [None] * len(outside)
    for penalty in penalties:
        scores = np.empty(n_rows)
        for i, rows in enumerate(outside):
            model = fit_unstable(
                inside[i], settings, penalty, start=starts[i], tol=_TOLERANCE, whitening=whitening
            )
            starts[i] = model.linear_fit
            scores[rows] = log_likelihood_rows(model.log_proba(part.X[rows]), part.class_evidence[rows])
        yield scores


def can_shrink(amount: Amount, settings: Settings) -> bool:
    """Whether the head is ours, with a penalty that is not given, and the rows are too few for all of it."""
    ours = settings.head is None and settings.direct and settings.l2 == "auto"
    return ours and amount.is_wide and not amount.problem.all_labelled


def shrink(amount: Amount, settings: Settings, centre: FloatArray | None) -> Amount:
    """What the rows have to tell of a head that is shrunk: its centre, and how much of it is left.

    The head is shrunk towards zero or, if held-out rows are likelier then, towards `centre`, the mean
    head of labelled domains, of shape (columns, d + 1).
    """
    problem, most = amount.problem, amount.worth / LABELS_PER_PARAMETER
    count = _Effective(problem)
    least = float(problem.weight.sum()) * count.least_penalty(most)
    strengths = tuple(least * factor for factor in _STRONGER)
    tries = [problem] if centre is None else [problem, replace(problem, centre=centre)]
    found = [(part, cross_fit(part, settings, strengths=strengths)) for part in tries]
    best, fitted = max(found, key=lambda pair: pair[1].gain)
    return Amount(best, count(fitted.l2), fitted)


class _Effective:
    """The effective number of parameters as a function of the penalty."""

    def __init__(self, problem: Problem) -> None:
        share = problem.weight / problem.weight.sum()
        centred = problem.stable - share @ problem.stable
        spread = (centred * share[:, None]).T @ centred
        n_classes = problem.n_classes
        by_class = spread[1:, 1] if n_classes == 2 else np.linalg.eigvalsh(spread)[1:]
        self.free = n_classes - 1  # intercepts
        self.sizes = np.outer(by_class, _eigenvalues(problem.X, share)).ravel()

    def __call__(self, l2: float) -> float:
        return float(self.free + (self.sizes / (self.sizes + l2)).sum())

    def least_penalty(self, most: float) -> float:
        """The penalty that leaves `most` parameters; at least one beside the intercepts."""
        most = max(most, self.free + 1.0)
        return float(np.exp(brentq(lambda log: self(np.exp(log)) - most, -60.0, 60.0)))


def _eigenvalues(X: object, share: FloatArray) -> FloatArray:
    """Of Xᵀ diag(share) X, those that are not zero."""
    dense = np.asarray(X.toarray() if sparse.issparse(X) else X)  # type: ignore[attr-defined]
    rows = dense * np.sqrt(share)[:, None]
    if min(rows.shape) > _MOST_EIGENVALUES:
        return np.asarray((rows**2).sum(axis=0))
    gram = rows.T @ rows if rows.shape[0] >= rows.shape[1] else rows @ rows.T
    return np.maximum(np.linalg.eigvalsh(gram), 1e-12)
