"""The L2 penalty of the head, chosen without labels by cross-fitted likelihood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from sfboost.adaptation.fitting import fit_unstable
from sfboost.adaptation.narrow import Narrow, narrow
from sfboost.adaptation.problem import Problem
from sfboost.adaptation.row_sample import RowSketch
from sfboost.adaptation.settings import Choices
from sfboost.heads.linear import LinearFit
from sfboost.heads.objectives import log_proba_from_logits
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


def cross_fit(
    problem: Problem,
    settings: Choices,
    total: float | None = None,
    strengths: tuple[float, ...] = STRENGTHS,
) -> CrossFit:
    """Choose the penalty (unless it is given) and estimate ℓ, on at most 10 000 rows.

    Labels would say which penalty predicts best; ℓ on rows that were held out says it without them. `total`
    is the weight of all rows if `problem` holds some of them only, `strengths` are the penalties to try.

    References
    ----------
    .. [1] M. Stone (1974). Cross-Validatory Choice and Assessment of Statistical Predictions. Journal
       of the Royal Statistical Society B 36.
    """
    total = float(problem.weight.sum()) if total is None else total
    most = most_rows(problem.X.shape[1], problem.n_classes)
    if len(problem.stable) > most:
        problem = problem.take(RowSketch.of(problem.keys, most).draw(most, settings.random_state))
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
    tries = strengths if settings.l2 is None else (settings.l2 * total,)
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
    chosen = int(np.argmax(means))
    l2 = tries[chosen] / total
    return CrossFit(l2, means[chosen], errors[chosen], len(rows), tries, means)


def mean_and_error(values: FloatArray, share: FloatArray) -> tuple[float, float]:
    """Weighted mean of independent rows, and its standard error."""
    mean = float(share @ values)
    spread = float(share @ (values - mean) ** 2)
    return mean, float(np.sqrt(spread * float(share @ share)))


def most_rows(n_features: int, n_classes: int) -> int:
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
    ring: Problem, part: Problem, settings: Choices, penalties: list[float], edges: list[int]
) -> Iterator[FloatArray]:
    """ℓ of each row of `part` under a head fitted without the row's fold, one penalty after the other.

    Each fit starts from the one with the penalty before. A row is judged with the prior of all rows;
    whatever `labelled_risk` is, a labelled row is judged by f_U.
    """
    n_rows = len(part.stable)
    # Two rows fill two of the folds.
    outside = [slice(first, last) for first, last in pairwise(edges) if last > first]
    after = [fold.stop % n_rows for fold in outside]
    inside = [
        ring.take(slice(first, first + n_rows - (fold.stop - fold.start)))
        for first, fold in zip(after, outside, strict=True)
    ]
    together = Narrow.of(inside) if all(narrow(fold, settings) for fold in inside) else None
    whitening = None if together is not None else Whitening.of(part.X, part.weight)
    starts: list[LinearFit | None] = [None] * len(outside)
    for penalty in penalties:
        scores = np.empty(n_rows)
        found = starts if together is None else together.fit(penalty, starts, _TOLERANCE)
        for i, rows in enumerate(outside):
            if together is not None and (fit := found[i]) is not None:
                starts[i], log_unstable = fit, log_proba_from_logits(fit.logits(part.X[rows]))
            else:
                model = fit_unstable(
                    inside[i], settings, penalty, start=starts[i], tol=_TOLERANCE, whitening=whitening
                )
                starts[i], log_unstable = model.linear_fit, model.log_proba(part.X[rows])
            scores[rows] = log_likelihood_rows(log_unstable, part.class_evidence[rows])
        yield scores
