"""The L2 penalty of the head, chosen without labels by cross-fitted likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfboost.adaptation.fitting import fit_unstable
from sfboost.adaptation.problem import IntArray, Problem
from sfboost.adaptation.settings import Settings
from sfboost.marginal import log_likelihood_rows
from sfboost.marginal.probabilities import FloatArray

#: Candidate penalties in units of one row: l2 = strength / n. Never zero: ℓ may be unbounded else.
STRENGTHS = (0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
_FOLDS = 3
# Enough rows to rank penalties; beyond them the choice hardly matters and the time does.
_MOST_ROWS = 10_000
_MOST_VALUES = 2_000_000
# Ranking penalties needs fewer digits than the final fit.
_TOLERANCE = 1e-5


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
        The candidates (l2 times rows) and the mean held-out ℓ of each.
    """

    l2: float
    gain: float
    standard_error: float
    n_rows: int
    strengths: tuple[float, ...]
    gains: tuple[float, ...]


def cross_fit(problem: Problem, settings: Settings) -> CrossFit:
    """Choose the penalty (unless it is given) and estimate ℓ, on at most 10 000 rows."""
    rng = np.random.default_rng(settings.random_state)
    rows = _some_rows(problem, rng)
    part = problem.take(rows)
    folds = rng.permutation(len(part.stable)) % _FOLDS
    n = float(part.weight.sum())
    tries = STRENGTHS if settings.l2 is None else (settings.l2 * float(problem.weight.sum()),)
    scores = _held_out(part, settings, [strength / n for strength in tries], folds)
    share = part.weight / n
    gains = [float(share @ score) for score in scores]
    best = int(np.argmax(gains))
    spread = float(share @ (scores[best] - gains[best]) ** 2)
    error = float(np.sqrt(spread * float(share @ share)))
    l2 = tries[best] / float(problem.weight.sum())
    return CrossFit(l2, gains[best], error, len(rows), tuple(tries), tuple(gains))


def _some_rows(problem: Problem, rng: np.random.Generator) -> IntArray:
    """Rows to cross-fit on, in an order that is theirs and not the table's.

    Where ℓ is flat another assignment to folds is another penalty: a table and the same table sorted must
    get the same one. Rows are ordered by a random linear function of all that is known of them.
    """
    n_rows = len(problem.stable)
    content = np.column_stack([problem.stable, problem.known, problem.weight])
    key = content @ rng.normal(size=content.shape[1]) + problem.X @ rng.normal(size=problem.X.shape[1])
    order = np.argsort(key, kind="stable")
    width = (problem.X.shape[1] + 1) * problem.n_classes
    most = max(2000, min(_MOST_ROWS, _MOST_VALUES // width))
    if n_rows <= most:
        return order
    return order[np.sort(rng.choice(n_rows, most, replace=False))]


def _held_out(problem: Problem, settings: Settings, penalties: list[float], folds: IntArray) -> FloatArray:
    """ℓ of each row (columns) for each penalty (rows), under a head fitted without the row's fold.

    Each fit starts from the one with the next larger penalty. A row is judged with the prior of all rows;
    whatever `labelled_risk` is, a labelled row is judged by f_U.
    """
    scores = np.empty((len(penalties), len(problem.stable)))
    for fold in np.unique(folds):  # two rows fill two of them
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        train, X_outside = problem.take(inside), problem.take(outside).X
        start = None
        for i in reversed(range(len(penalties))):
            model = fit_unstable(train, settings, penalties[i], start=start, tol=_TOLERANCE)
            start = model.linear_fit
            log_unstable = model.log_proba(X_outside)
            scores[i, outside] = log_likelihood_rows(log_unstable, problem.class_evidence[outside])
    return scores
