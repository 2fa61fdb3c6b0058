"""L-BFGS for linear heads, in coordinates that suit the rows and then the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from sfboost.heads.evaluation import Loss, Nearby
from sfboost.heads.objectives import LogLikelihood
from sfboost.heads.whitening import Coordinates, Whitening
from sfboost.marginal.probabilities import FloatArray

# Down to here single precision will do.
_COARSE = 1e-4
# The first leg ends here: it decides which of several optima is found, the second one where that lies.
# Farther out the likelihood may not be convex yet, and the second leg loses its way.
_NEAR = 3e-5
_ROWS = 2000


class Found(NamedTuple):
    """Where a solver ended."""

    theta: FloatArray
    value: float
    n_iterations: int
    converged: bool


def lbfgs(
    loss: Loss, theta: FloatArray, whitening: Whitening, *, max_iterations: int, tolerance: float
) -> Found:
    """Minimise a loss from theta until no entry of its gradient exceeds the tolerance.

    The rows are made white. A likelihood of several classes and wide rows has a second leg, in coordinates in
    which its own curvature between the classes is even too: where f_S hardly tells some apart, that spares
    hundreds of steps.
    """
    legs = 1 + (isinstance(loss.objective, LogLikelihood) and len(theta) > 1 and tolerance < _NEAR)
    near = Nearby.of(loss, precise=legs == 1 and tolerance < _COARSE)
    coordinates = white_rows(whitening, loss.l2, len(theta))
    if legs == 1 or isinstance(near, Loss):
        return descend(near.at, theta, coordinates, tolerance, max_iterations)
    first = descend(near.at, theta, coordinates, _NEAR, max_iterations)
    if first.n_iterations >= max_iterations:
        return first._replace(converged=False)
    near.renew(precise=True)
    coordinates = white_rows(whitening, loss.l2, len(theta), _information(loss, first.theta))
    left = max_iterations - first.n_iterations
    second = descend(near.at, first.theta, coordinates, tolerance, left, again=True)
    return second._replace(n_iterations=first.n_iterations + second.n_iterations)


def white_rows(
    whitening: Whitening, l2: float, columns: int, curvature: FloatArray | None = None
) -> Coordinates:
    """Coordinates of a loss whose curvature in its logits is that at even odds, or as given."""
    classes = max(columns, 2)
    even = (classes - 1) / classes**2
    return whitening.at(l2 / even, None if curvature is None else curvature / even)


def descend(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    theta: FloatArray,
    coordinates: Coordinates,
    tolerance: float,
    max_iterations: int,
    again: bool = False,
) -> Found:
    """One run of L-BFGS, stopped by the gradient in the plain coordinates.

    `evaluate` gives the penalised value, and its gradient in theta of shape (columns, d + 1).
    """
    value, gradient = evaluate(theta)
    largest = np.abs(gradient).max()
    if largest <= tolerance:
        return Found(theta, value, 0, True)
    white = coordinates.gradient(gradient)
    # The solver's first step has length one: near the optimum that is far too long.
    unit = float(np.linalg.norm(white)) if again else 1.0
    known = [(value, unit * white.ravel())]

    def at(point: FloatArray) -> tuple[float, FloatArray]:
        nonlocal largest
        if known:
            return known.pop()
        value, gradient = evaluate(coordinates.to_plain(unit * point.reshape(theta.shape)))
        largest = np.abs(gradient).max()
        return value, unit * coordinates.gradient(gradient).ravel()

    def stop(_: FloatArray) -> None:
        if largest <= tolerance:
            raise StopIteration

    found = minimize(
        at,
        coordinates.to_white(theta).ravel() / unit,
        jac=True,
        method="L-BFGS-B",
        callback=stop,
        options={"maxiter": max_iterations, "gtol": 0.0, "ftol": 10.0 * tolerance**2, "maxcor": 20},
    )
    theta = coordinates.to_plain(unit * found.x.reshape(theta.shape))
    converged = bool(found.success) or bool(largest <= tolerance)
    return Found(theta, float(found.fun), int(found.nit), converged)


def _information(loss: Loss, theta: FloatArray) -> FloatArray:
    """The curvature of a likelihood in its logit columns, from some rows, evenly spaced."""
    step = slice(None, None, max(1, loss.X.shape[0] // _ROWS))
    logits = np.asarray(loss.X[step] @ theta[:, :-1].T) + theta[:, -1]
    assert isinstance(loss.objective, LogLikelihood)
    return loss.objective.information(logits, step)
