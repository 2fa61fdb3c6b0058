"""The pieces of the leak correction: cells of U, the law of the score in each cell, mixture shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances_argmin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from sfboost.diagnostics.unstable_guess import domain_heads
from sfboost.marginal.probabilities import FloatArray, IntArray

# Rows of each class that a cell needs.
FEWEST_ROWS = 10
_KNOTS = 6
_PSEUDO_COUNT = 0.5


def log_odds(proba: FloatArray) -> FloatArray:
    """Return log p_k − log p_0 for k > 0: what a score says, without its one redundant column."""
    log = np.log(np.maximum(proba, 1e-6))
    return log[:, 1:] - log[:, :1]


class Cells:
    """Coarse cells of the unstable features: clusters of what the training domains' heads say."""

    def __init__(self, X: FloatArray, y: IntArray, domain: npt.NDArray[Any], n_cells: int, seed: int) -> None:
        self._heads = domain_heads(X, y, domain)
        self.n_cells = n_cells
        distinct = len(np.unique(self._scores(X).round(6), axis=0))
        if distinct < n_cells:
            raise ValueError(
                f"The unstable features take {distinct} distinct values: {n_cells} cells are too many."
            )
        self._scaler = StandardScaler()
        clusters = KMeans(n_cells, n_init=5, random_state=seed)
        clusters.fit(self._scaler.fit_transform(self._scores(X)))
        self._centres = clusters.cluster_centers_

    def _scores(self, X: FloatArray) -> FloatArray:
        # The odds of a separable feature have no bound; beyond ±6 they tell cells apart no more.
        return np.hstack([np.clip(log_odds(head.predict_proba(X)), -6.0, 6.0) for head in self._heads])

    def assign(self, X: FloatArray) -> IntArray:
        """Return the cell of each row."""
        scores = self._scaler.transform(self._scores(X))
        return np.asarray(pairwise_distances_argmin(scores, self._centres), dtype=np.intp)


class ScoreModel:
    """w_y(t, u) in each cell u: a spline logistic model of Y given T over the cell's class shares."""

    def __init__(
        self, odds: FloatArray, cell: IntArray, y: IntArray, weight: FloatArray, n_cells: int, n_classes: int
    ) -> None:
        self.n_classes = n_classes
        self._limits = np.quantile(odds, [0.005, 0.995], axis=0)
        self._models: list[Any] = []
        self._shares: list[FloatArray] = []
        for u in range(n_cells):
            rows = cell == u
            counts = np.bincount(y[rows], minlength=n_classes)
            if counts.min() < FEWEST_ROWS:
                raise ValueError(
                    f"Cell {u} of {n_cells} holds {counts.min()} training rows of class number "
                    f"{counts.argmin()}; "
                    f"{FEWEST_ROWS} are needed to learn the stable score's law there. Use fewer "
                    "cells or more rows."
                )
            self._shares.append(np.bincount(y[rows], weight[rows], n_classes) / weight[rows].sum())
            self._models.append(self._fit(self._clip(odds[rows]), y[rows], weight[rows]))

    def _clip(self, odds: FloatArray) -> FloatArray:
        return np.clip(odds, *self._limits)

    def _fit(self, odds: FloatArray, y: IntArray, weight: FloatArray) -> Any:
        if np.ptp(odds, axis=0).max() < 1e-9:
            return None  # a score that says nothing in this cell
        spline = SplineTransformer(n_knots=_KNOTS, degree=2, extrapolation="constant", include_bias=False)
        model = make_pipeline(spline, StandardScaler(), LogisticRegression(C=10.0, max_iter=1000))
        return model.fit(odds, y, logisticregression__sample_weight=weight * len(y) / weight.sum())

    def weights(self, odds: FloatArray, cell: IntArray) -> FloatArray:
        """W of shape (n, K)."""
        w = np.ones((len(odds), self.n_classes))
        clipped = self._clip(odds)
        for u, (model, share) in enumerate(zip(self._models, self._shares, strict=True)):
            rows = cell == u
            if model is not None and rows.any():
                w[rows] = model.predict_proba(clipped[rows]) / share
        return w


def mixture_shares(weights: FloatArray) -> FloatArray:
    """Return q on the simplex that maximises Σ_i log Σ_y q_y w_iy (with half a pseudo-count per class).

    Rows are a mixture of classes whose laws are known: what is not known is how much there is of each.

    Parameters
    ----------
    weights : array of shape (n, K)
        Likelihoods of each row under each class, up to a factor per row.

    Returns
    -------
    array of shape (K,)

    Examples
    --------
    >>> import numpy as np
    >>> mixture_shares(np.array([[0.75, 0.25]] * 600 + [[0.25, 0.75]] * 400)).round(2)
    array([0.7, 0.3])

    References
    ----------
    .. [1] A. P. Dempster, N. M. Laird and D. B. Rubin (1977). Maximum Likelihood from Incomplete Data
       via the EM Algorithm. Journal of the Royal Statistical Society B 39.
    """
    n, n_classes = weights.shape
    scaled = weights / weights.max(axis=1, keepdims=True)

    def loss(q: FloatArray) -> tuple[float, FloatArray]:
        mix = scaled @ q
        value = -np.log(mix).sum() - _PSEUDO_COUNT * np.log(q).sum()
        gradient = -(scaled / mix[:, None]).sum(axis=0) - _PSEUDO_COUNT / q
        return value / n, gradient / n

    start = np.full(n_classes, 1.0 / n_classes)
    result = minimize(
        loss,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(1e-6, 1.0)] * n_classes,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1.0, "jac": np.ones_like},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    q = np.clip(result.x, 1e-6, 1.0)
    return np.asarray(q / q.sum())


def share_error(weights: FloatArray, q: FloatArray) -> float:
    """Half the summed standard errors of q: the scale of its total-variation error."""
    return float(0.5 * standard_error(weights, q, np.ones(len(q)), np.ones(len(weights))).sum())


def standard_error(
    proba: FloatArray, prior: FloatArray, source_prior: FloatArray, weight: FloatArray
) -> FloatArray:
    """Of the maximum of the likelihood Σ w log Σ_k π_k f_k / p_k, along shares that sum to one."""
    ratio = proba / source_prior
    score = ratio / (ratio @ prior)[:, None]
    n_classes = len(prior)
    # An orthonormal basis of the directions in which shares can move.
    basis = np.linalg.svd(np.ones((1, n_classes)))[2][1:].T
    along = score @ basis
    information = (along * weight[:, None]).T @ along
    noise = (along * weight[:, None] ** 2).T @ along
    inverse = np.linalg.pinv(information)
    covariance = basis @ inverse @ noise @ inverse @ basis.T
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))
