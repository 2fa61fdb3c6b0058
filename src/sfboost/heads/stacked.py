"""Several narrow heads at once: value, gradient and Hessian of stacks of rows, and Newton steps.

A head of ten parameters on a thousand rows is fitted in less time than its solver takes to be called. So fits
of one kind to rows of about one number (the folds of a cross-fit, many domains) share every product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from sfboost.heads.objectives import n_logit_columns
from sfboost.marginal.probabilities import FloatArray

# Newton's method is at its end after a few steps, or it is lost.
_MOST_STEPS, _SHORTEST = 30, 1e-3
# A trace of ridge on everything: the shared intercept of K columns is free.
_TRACE = 1e-10


class Laws(NamedTuple):
    """What a loss is of logits of shape (D, K, m).

    `value` is that of each row; its gradient is f_U less `other`; and `other` bends with the logits as f_U
    does (a posterior), or not at all (labels).
    """

    value: FloatArray
    unstable: FloatArray
    other: FloatArray
    bends: bool


Loss = Callable[[FloatArray], Laws]


@dataclass(frozen=True, eq=False)
class Curved:
    """The loss of each of D heads, and its derivatives in θ of shape (D, P)."""

    value: FloatArray
    gradient: FloatArray
    hessian: FloatArray


@dataclass(frozen=True, eq=False)
class Stack:
    """Rows of D heads.

    Attributes
    ----------
    design : array of shape (D, d + 1, m)
        X_U and a last row of ones; an empty place has zero.
    weight : array of shape (D, m)
        Of each row; zero for an empty place.
    """

    design: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, rows: Sequence[Any], weights: Sequence[FloatArray]) -> Self:
        """Dense rows of shape (n, d), one array for each head."""
        design = padded([np.vstack([X.T, np.ones(len(X))]) for X in rows])
        return cls(design, padded(weights))

    def curve(self, loss: Loss, theta: FloatArray, n_classes: int) -> Curved:
        """The loss at theta of shape (D, columns · (d + 1))."""
        (n_heads, width, n_places), columns = self.design.shape, n_logit_columns(n_classes)
        z = np.zeros((n_heads, n_classes, n_places))
        np.matmul(theta.reshape(n_heads, columns, width), self.design, out=z[:, -columns:])
        value, unstable, other, bends = loss(z)
        turned = self.design.transpose(0, 2, 1)
        by_logit = (unstable - other)[:, -columns:] * self.weight[:, None]
        gradient = (by_logit @ turned).reshape(n_heads, -1)
        hessian = np.empty((n_heads, columns, width, columns, width))
        for k in range(columns):
            for m in range(k + 1):
                i, j = k + n_classes - columns, m + n_classes - columns
                curvature = -unstable[:, i] * unstable[:, j]
                if k == m:
                    curvature += unstable[:, i]
                if bends:
                    curvature += other[:, i] * other[:, j]
                    if k == m:
                        curvature -= other[:, i]
                curvature *= self.weight
                block = (self.design * curvature[:, None]) @ turned
                hessian[:, k, :, m, :] = block
                if k != m:
                    hessian[:, m, :, k, :] = block.transpose(0, 2, 1)
        size = columns * width
        value = np.einsum("dm,dm->d", value, self.weight)
        return Curved(value, gradient, hessian.reshape(n_heads, size, size))


def padded(parts: Sequence[FloatArray]) -> FloatArray:
    """Arrays that differ in their last axis as one; an empty place has zero."""
    most = max(part.shape[-1] for part in parts)
    stacked = np.zeros((len(parts), *parts[0].shape[:-1], most))
    for place, part in zip(stacked, parts, strict=True):
        place[..., : part.shape[-1]] = part
    return stacked


def likelihood(evidence: FloatArray) -> Loss:
    """−ℓ, with log(f_S / p) of shape (D, K, m)."""

    def laws(z: FloatArray) -> Laws:
        log_sum, unstable = _softmax(z)
        log_joint, joint = _softmax(z + evidence)
        return Laws(log_sum - log_joint, unstable, joint, True)

    return laws


def cross_entropy(targets: FloatArray) -> Loss:
    """Of soft labels of shape (D, K, m)."""

    def laws(z: FloatArray) -> Laws:
        log_sum, unstable = _softmax(z)
        return Laws(log_sum - np.einsum("dkm,dkm->dm", targets, z), unstable, targets, False)

    return laws


def _softmax(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    largest = z.max(axis=1)
    proba = np.exp(z - largest[:, None])
    total = proba.sum(axis=1)
    proba /= total[:, None]
    return largest + np.log(total), proba


def descend(
    stack: Stack, loss: Loss, theta: FloatArray, n_classes: int, l2: float, tolerance: float
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Minimise loss + l2/2 · ‖W‖² of each head from theta of shape (D, P).

    Returns theta, the penalised value, and which heads have no entry of the gradient beyond the tolerance. A
    Hessian that is not positive, or a step that must be made very short, ends it for all: Newton's method is
    for where the loss is convex.
    """
    width = stack.design.shape[1]
    inner = np.arange(theta.shape[1]) % width != width - 1
    ridge, trace = l2 * inner, np.diag(l2 * inner + _TRACE)

    def look(at: FloatArray) -> Curved:
        found = stack.curve(loss, at, n_classes)
        pulled = ridge * at
        value = found.value + 0.5 * np.einsum("dp,dp->d", pulled, at)
        return Curved(value, found.gradient + pulled, found.hessian + trace)

    here = look(theta)
    for _ in range(_MOST_STEPS):
        done = np.abs(here.gradient).max(axis=1) <= tolerance
        if done.all():
            break
        try:
            np.linalg.cholesky(here.hessian)
        except np.linalg.LinAlgError:
            break
        step = np.linalg.solve(here.hessian, here.gradient[:, :, None])[:, :, 0]
        step[done] = 0.0
        slope, size = np.einsum("dp,dp->d", step, here.gradient), np.ones(len(theta))
        while True:
            there = look(theta - size[:, None] * step)
            good = there.value <= here.value - 1e-4 * size * slope + 1e-14 * np.abs(here.value)
            if good.all() or size.min() < _SHORTEST:
                break
            size = np.where(good, size, 0.5 * size)
        if not good.all():
            break
        theta, here = theta - size[:, None] * step, there
    return theta, here.value, np.abs(here.gradient).max(axis=1) <= tolerance
