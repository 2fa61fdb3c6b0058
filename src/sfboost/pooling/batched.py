"""ℓ of many domains at once: value, gradient, Hessian, and Newton steps to the mode under a normal prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfboost.heads.objectives import n_logit_columns
from sfboost.marginal.probabilities import FloatArray, floored_log
from sfboost.pooling.grouping import DomainStack

_STEPS = 12
# Largest step in any parameter at which a domain is at its maximum.
_CLOSE = 1e-4


@dataclass(frozen=True, eq=False)
class Curved:
    """−ℓ of each domain of a stack, and its derivatives in θ of shape (D, P)."""

    value: FloatArray
    gradient: FloatArray
    hessian: FloatArray


def log_evidence(stack: DomainStack, shares: FloatArray) -> FloatArray:
    """log(f_S / p) of shape (D, K, m), with p of shape (D, K); an empty place has zero."""
    evidence = floored_log(stack.stable) - floored_log(shares)[:, :, None]
    return np.asarray(evidence * stack.weight[:, None])


def curve(stack: DomainStack, evidence: FloatArray, theta: FloatArray) -> Curved:
    """−ℓ and its derivatives at theta of shape (D, columns · (d + 1))."""
    n_domains, n_classes, n_places = evidence.shape
    columns, width = n_logit_columns(n_classes), stack.design.shape[1]
    z = np.zeros((n_domains, n_classes, n_places))
    np.matmul(theta.reshape(n_domains, columns, width), stack.design, out=z[:, -columns:])
    log_sum, unstable = _softmax(z)
    log_joint, joint = _softmax(z + evidence)
    value = ((log_sum - log_joint) * stack.weight).sum(axis=1)
    turned = stack.design.transpose(0, 2, 1)
    by_logit = (unstable - joint)[:, -columns:]
    gradient = (by_logit @ turned).reshape(n_domains, -1)
    hessian = np.empty((n_domains, columns, width, columns, width))
    for k in range(columns):
        for m in range(k + 1):
            i, j = k + n_classes - columns, m + n_classes - columns
            curvature = joint[:, i] * joint[:, j] - unstable[:, i] * unstable[:, j]
            if k == m:
                curvature += unstable[:, i] - joint[:, i]
            block = (stack.design * curvature[:, None]) @ turned
            hessian[:, k, :, m, :] = block
            hessian[:, m, :, k, :] = block.transpose(0, 2, 1)
    size = columns * width
    return Curved(value, gradient, hessian.reshape(n_domains, size, size))


def _softmax(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    largest = z.max(axis=1)
    proba = np.exp(z - largest[:, None])
    total = proba.sum(axis=1)
    proba /= total[:, None]
    return largest + np.log(total), proba


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
