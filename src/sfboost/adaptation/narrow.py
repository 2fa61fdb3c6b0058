"""Heads of a few parameters on some thousand rows, several at once: what play and cross-fits ask for most.

The maximum is the one that `fitting` would find: the same start, the same tolerance, and where ℓ is not
concave on the way there nothing is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from sfboost.adaptation.problem import Problem
from sfboost.adaptation.settings import Choices
from sfboost.heads import SoftLogisticRegression
from sfboost.heads.linear import LinearFit
from sfboost.heads.objectives import n_logit_columns
from sfboost.heads.stacked import Stack, cross_entropy, descend, likelihood, padded
from sfboost.marginal.probabilities import FloatArray

# Beyond so many parameters or rows second derivatives take longer than a solver that has none.
_PARAMETERS, _ROWS = 32, 20_000
#: A start needs fewer digits than what is fitted from it.
START_TOLERANCE = 1e-4


def narrow(problem: Problem, settings: Choices) -> bool:
    """Whether ℓ of these rows can be maximised here, and may be."""
    ours = settings.head is None or type(settings.head) is SoftLogisticRegression
    size = (problem.X.shape[1] + 1) * n_logit_columns(problem.n_classes)
    joint = settings.labelled_risk == "joint" and len(problem.labelled) > 0
    return (
        settings.together
        and settings.direct
        and ours
        and not joint
        and problem.centre is None
        and not sparse.issparse(problem.X)
        and size <= _PARAMETERS
        and len(problem.stable) <= _ROWS
    )


@dataclass(frozen=True, eq=False)
class Narrow:
    """Rows of several heads, with all that does not depend on the penalty.

    Attributes
    ----------
    stack : Stack
    pseudo : array of shape (D, K, m)
        f_S, and known labels.
    evidence : array of shape (D, K, m) or None
        log(f_S / p), and known labels; None if there is nothing to infer, since every row is labelled.
    """

    stack: Stack
    pseudo: FloatArray
    evidence: FloatArray | None

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> Self:
        """Each problem has a head of its own."""
        one_hot = np.eye(problems[0].n_classes)
        return cls(
            Stack.of([part.X for part in problems], [part.weight / part.weight.sum() for part in problems]),
            padded([part.fix_labels(part.stable, one_hot).T for part in problems]),
            None
            if all(part.all_labelled for part in problems)
            else padded([part.class_evidence.T for part in problems]),
        )

    def fit(self, l2: float, starts: Sequence[LinearFit | None], tolerance: float) -> list[LinearFit | None]:
        """The head of each, from where its start is or else from the soft-label head; None if not found."""
        n_heads, n_classes, _ = self.pseudo.shape
        columns, width = n_logit_columns(n_classes), self.stack.design.shape[1]
        first = np.zeros((n_heads, columns, width))
        for at, start in zip(first, starts, strict=True):
            if start is not None:
                at[:, :-1], at[:, -1] = start.coef.T, start.intercept
        theta: FloatArray = first.reshape(n_heads, -1)
        soft, inferred = cross_entropy(self.pseudo), self.evidence
        if inferred is not None and any(start is None for start in starts):
            start_tolerance = max(tolerance, START_TOLERANCE)
            theta, _, found = descend(self.stack, soft, theta, n_classes, l2, start_tolerance)
            if not found.all():
                return [None] * n_heads
        loss = soft if inferred is None else likelihood(inferred)
        theta, value, found = descend(self.stack, loss, theta, n_classes, l2, tolerance)
        heads = theta.reshape(n_heads, columns, width)
        # The mean of K intercepts is free; centring makes the fit unique.
        level = heads[:, :, -1] - (heads[:, :, -1].mean(axis=1, keepdims=True) if columns > 1 else 0.0)
        return [
            LinearFit(heads[i, :, :-1].T, level[i], float(value[i]), 0, True) if found[i] else None
            for i in range(n_heads)
        ]
