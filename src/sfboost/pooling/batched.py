"""ℓ of many domains at once: value, gradient, Hessian, and Newton steps to the mode under a normal prior."""

from __future__ import annotations

import numpy as np

from sfboost.heads.stacked import Curved, Stack, likelihood
from sfboost.marginal.probabilities import FloatArray, floored_log
from sfboost.pooling.grouping import DomainStack

_STEPS = 12
# Largest step in any parameter at which a domain is at its maximum.
_CLOSE = 1e-4


def log_evidence(stack: DomainStack, shares: FloatArray) -> FloatArray:
    """log(f_S / p) of shape (D, K, m), with p of shape (D, K); an empty place has zero."""
    evidence = floored_log(stack.stable) - floored_log(shares)[:, :, None]
    return np.asarray(evidence * stack.weight[:, None])


def curve(stack: DomainStack, evidence: FloatArray, theta: FloatArray) -> Curved:
    """−ℓ and its derivatives at theta of shape (D, columns · (d + 1))."""
    return Stack(stack.design, stack.weight).curve(likelihood(evidence), theta, evidence.shape[1])


def climb(
    stack: DomainStack,
    evidence: FloatArray,
    theta: FloatArray,
    mean: FloatArray,
    precision: FloatArray,
    most: int = _STEPS,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The mode of each domain's posterior under θ ~ N(mean, precision⁻¹), its covariance, and ℓ there.

    ℓ is not concave: where a Hessian has directions that are flat or bend the wrong way, they are given the
    curvature of the prior. A domain whose step does not help takes half of it.
    """
    least = float(np.linalg.eigvalsh(precision)[0])

    def look(at: FloatArray, rows: DomainStack, weights: FloatArray) -> tuple[FloatArray, Curved]:
        found = curve(rows, weights, at)
        away = at - mean
        pulled = away @ precision
        full = Curved(
            found.value + 0.5 * (pulled * away).sum(axis=1),
            found.gradient + pulled,
            found.hessian + precision,
        )
        return found.value, full

    plain, here = look(theta, stack, evidence)
    scale = np.ones(len(theta))
    for _ in range(most):
        step = _solve(here, least)
        trial = theta - scale[:, None] * step
        plain_there, there = look(trial, stack, evidence)
        better = there.value <= here.value + 1e-9
        theta = np.where(better[:, None], trial, theta)
        plain = np.where(better, plain_there, plain)
        here = Curved(
            np.where(better, there.value, here.value),
            np.where(better[:, None], there.gradient, here.gradient),
            np.where(better[:, None, None], there.hessian, here.hessian),
        )
        moved = np.abs(step).max(axis=1) * scale
        scale = np.where(better, np.minimum(1.0, 2.0 * scale), 0.25 * scale)
        if (moved[better] < _CLOSE).all() and better.all():
            break
    return theta, _inverse(here.hessian, least), -plain


def _solve(at: Curved, least: float) -> FloatArray:
    values, vectors = np.linalg.eigh(at.hessian)
    along = np.einsum("dij,di->dj", vectors, at.gradient) / np.maximum(values, least)
    return np.einsum("dij,dj->di", vectors, along)


def _inverse(hessian: FloatArray, least: float) -> FloatArray:
    values, vectors = np.linalg.eigh(hessian)
    return np.einsum("dik,dk,djk->dij", vectors, 1.0 / np.maximum(values, least), vectors)
