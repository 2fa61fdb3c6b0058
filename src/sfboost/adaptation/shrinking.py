"""Heads with more parameters than rows can carry: shrunk until they can, if what is left tells something.

A penalty leaves a head fewer parameters than it has. At f_U ≡ p the information of a row in its logits is
Cov(f_S), so that an eigenvalue σ of the features' covariance and an eigenvalue c of Cov(f_S) count as
c σ / (c σ + l2) of a parameter.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.optimize import brentq

from sfboost.adaptation.decision import LABELS_PER_PARAMETER, Amount
from sfboost.adaptation.problem import Problem
from sfboost.adaptation.regularisation import CrossFit, cross_fit
from sfboost.adaptation.settings import Choices
from sfboost.marginal.probabilities import FloatArray

# Wider matrices are taken for uncorrelated columns, which leaves the most parameters.
_MOST_EIGENVALUES = 2000
#: Penalties to try, in units of the least one that the rows can carry.
_STRONGER = (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)


def can_shrink(amount: Amount, choices: Choices) -> bool:
    """Whether the head is ours, with a penalty that is not given, and the rows are too few for all of it."""
    ours = choices.head is None and choices.direct and choices.l2 is None
    return ours and amount.is_wide and not amount.all_labelled


def shrink(
    problem: Problem, choices: Choices, amount: Amount, centre: FloatArray | None
) -> tuple[Problem, CrossFit, Amount]:
    """The problem with the head's centre, its penalty, and what the rows now have to tell.

    The head is shrunk towards zero or, if held-out rows are likelier then, towards `centre`, the mean
    head of labelled domains, of shape (columns, d + 1).
    """
    most = amount.worth / LABELS_PER_PARAMETER
    count = _Effective(problem)
    least = float(problem.weight.sum()) * count.least_penalty(most)
    strengths = tuple(least * factor for factor in _STRONGER)
    tries = [problem] if centre is None else [problem, replace(problem, centre=centre)]
    found = [(part, cross_fit(part, choices, strengths=strengths)) for part in tries]
    best, fitted = max(found, key=lambda pair: pair[1].gain)
    return best, fitted, replace(amount, effective=count(fitted.l2), held_out=fitted)


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
