"""Leak correction: ours, not the paper's.

The paper's correction assumes that X_S and X_U are independent given Y. A learned f_S always leaks a little
of the unstable features, and the correction multiplies the leak by 1/s. Here the law of the stable score T
= f_S given both Y and the unstable features is *learned where there are labels* and carried to the new
domain:

    assumption: P(T | Y, U) is the same in every domain, with U a coarse cell of the unstable features.

It needs neither complementarity nor calibration (even a plain ERM score will do), but it is another
assumption: it fails if P(X_S | Y) moves.

In the new domain q_u = Pr[Y | U = u] maximises Σ_i log Σ_y q_u,y w_y(t_i, u) cell by cell, a concave
problem, with w_y(t, u) = P(T = t | Y = y, U = u) up to a factor free of y: the training Pr[Y = y | t, u] /
Pr[Y = y | u]. Then Pr[Y = y | t, u] ∝ q_u,y w_y(t, u).

`LeakModel.flatten` puts one p, the class shares of the training domains, in place of every q_u: Pr[Y = y | t]
of a world where Y and U are independent. Where T is one-to-one with X_S in each cell that is the training
domains' Pr[Y | X_S]; where T does not leak it is T itself. Flattening so takes no side on how a new domain's
class shares came about: `sfboost.adapt` estimates them, from P(Y | X_S) or from P(X_S | Y) as it is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances_argmin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from sfboost.diagnostics.unstable_guess import domain_heads, unstable_guess
from sfboost.marginal import as_probability_matrix, floored_log
from sfboost.marginal.probabilities import FloatArray, IntArray, log_softmax
from sfboost_lab.baselines.stress import stress_domains

# Rows of each class that a cell needs.
_FEWEST_ROWS = 10
_KNOTS = 6
_PSEUDO_COUNT = 0.5
# What a finer division into cells must gain, in mean accuracy.
_GAIN = 0.002


@dataclass(frozen=True, eq=False)
class LeakModel:
    """P(T | Y, U) as learned on the training domains. Made by `fit_leak_model`.

    Attributes
    ----------
    classes : array of shape (K,)
    cells : Cells
        Which cell U a row is in.
    scores : ScoreModel
        The law of T in each cell.
    prior : array of shape (K,)
        Class shares of the training domains, each of which counts once.
    """

    classes: npt.NDArray[Any]
    cells: Cells
    scores: ScoreModel
    prior: FloatArray

    def adapt(self, stable_proba: Any, X_unstable: Any) -> LeakAdaptation:
        """Learn Pr[Y | U] of a new domain from unlabelled rows.

        Parameters
        ----------
        stable_proba : array-like of shape (n,) or (n, K)
            The stable (or any other) score that the model was fitted with.
        X_unstable : array-like of shape (n, d)
            Unstable features of the same rows.
        """
        weights, cell = self.weights(stable_proba, X_unstable)
        # A cell that the domain does not have gets the shares of all rows.
        shares = np.tile(mixture_shares(weights), (self.cells.n_cells, 1))
        for u in np.unique(cell):
            shares[u] = mixture_shares(weights[cell == u])
        return LeakAdaptation(self, shares)

    def flatten(self, stable_proba: Any, X_unstable: Any) -> FloatArray:
        """Take the leak out of a score: Pr[Y | T] as it would be were Y independent of U, of shape (n, K).

        The result is what the paper's correction wants of f_S. A calibrated score without a leak stays what
        it is.

        Parameters
        ----------
        stable_proba, X_unstable : array-like
            As in `adapt`.
        """
        joint = self.weights(stable_proba, X_unstable)[0] * self.prior
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def weights(self, stable_proba: Any, X_unstable: Any) -> tuple[FloatArray, IntArray]:
        """Return w_y(t, u) of each row, of shape (n, K), and its cell."""
        proba = as_probability_matrix(stable_proba, n_classes=len(self.classes))
        X = np.asarray(X_unstable, dtype=np.float64)
        if X.ndim != 2 or len(X) != len(proba):
            raise ValueError(
                f"X_unstable must have shape ({len(proba)}, d) like stable_proba, got {X.shape}."
            )
        cell = self.cells.assign(X)
        return self.scores.weights(log_odds(proba), cell), cell


@dataclass(frozen=True, eq=False)
class LeakAdaptation:
    """A leak model with Pr[Y | U] of one new domain.

    Attributes
    ----------
    model : LeakModel
    shares : array of shape (cells, K)
        Pr[Y | U = u] in the new domain.
    """

    model: LeakModel
    shares: FloatArray

    def predict_proba(self, stable_proba: Any, X_unstable: Any) -> FloatArray:
        """Pr[Y | T, U] in the new domain, of shape (n, K)."""
        weights, cell = self.model.weights(stable_proba, X_unstable)
        return np.exp(log_softmax(floored_log(weights) + floored_log(self.shares[cell])))

    def predict(self, stable_proba: Any, X_unstable: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        return np.asarray(self.model.classes[self.predict_proba(stable_proba, X_unstable).argmax(axis=1)])


def fit_leak_model(
    stable_proba: Any,
    X_unstable: Any,
    y: Any,
    domain: Any,
    *,
    n_cells: int | str = "auto",
    random_state: int = 0,
) -> LeakModel:
    """Learn P(T | Y, U) on labelled domains.

    Where there are labels one sees how f_S follows the unstable features within a class; what is seen there
    is taken for true in the new domain.

    Parameters
    ----------
    stable_proba : array-like of shape (n,) or (n, K)
        A score of labelled rows that it was not fitted to. It need not be calibrated nor stable.
    X_unstable : array-like of shape (n, d)
        Their unstable features.
    y, domain : array-like of shape (n,)
        Their labels and domains, at least two.
    n_cells : "auto" or int
        Coarseness of U; "auto" takes the best on stress domains (`choose_cells`), the coarser one when in
        doubt.
    random_state : int
        Seed of clusters and stress domains.

    Examples
    --------
    A score that follows the colour more than the shape still adapts to a domain where the colour is reversed:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> def draw(agreement, n=4000):
    ...     y = rng.integers(0, 2, n)
    ...     colour = np.where(rng.random(n) < agreement, y, 1 - y)
    ...     shape = np.where(rng.random(n) < 0.75, y, 1 - y)
    ...     return 1 / (1 + np.exp(-2.0 * (2 * colour - 1) - (2 * shape - 1))), colour[:, None], y
    >>> (p1, u1, y1), (p2, u2, y2), (p3, u3, y3) = draw(0.9), draw(0.8), draw(0.1)
    >>> model = fit_leak_model(np.r_[p1, p2], np.r_[u1, u2], np.r_[y1, y2], np.repeat([0, 1], 4000),
    ...                        n_cells=2)
    >>> adapted = model.adapt(p3, u3)
    >>> bool(((p3 > 0.5) == y3).mean() < 0.15), bool((adapted.predict(p3, u3) == y3).mean() > 0.88)
    (True, True)

    References
    ----------
    .. [1] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36. (What this departs from.)
    """
    proba = as_probability_matrix(stable_proba)
    X, domain = np.asarray(X_unstable, dtype=np.float64), np.asarray(domain)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if X.ndim != 2 or not len(proba) == len(X) == len(codes) == len(domain):
        raise ValueError(
            "stable_proba, X_unstable, y and domain need the same rows, got "
            f"{len(proba)}, {X.shape}, {len(codes)} and {len(domain)}."
        )
    if len(classes) != proba.shape[1]:
        raise ValueError(
            f"stable_proba has {proba.shape[1]} columns, y has the {len(classes)} classes {classes}."
        )
    if len(np.unique(domain)) < 2:
        raise ValueError(
            "Leak correction learns cells of the unstable features from training domains that differ, and "
            "got one: pass at least two, or use the paper's correction (sfboost.adapt)."
        )
    if n_cells == "auto":
        n_cells = choose_cells(proba, X, codes, domain, random_state=random_state)
    return _fitted(proba, X, codes, domain, classes, int(n_cells), random_state)


def _fitted(
    proba: FloatArray,
    X: FloatArray,
    y: IntArray,
    domain: npt.NDArray[Any],
    classes: npt.NDArray[Any],
    n_cells: int,
    seed: int,
) -> LeakModel:
    cells = Cells(X, y, domain, n_cells, seed)
    _, place, counts = np.unique(domain, return_inverse=True, return_counts=True)
    weight = 1.0 / counts[place]  # each domain counts once
    scores = ScoreModel(log_odds(proba), cells.assign(X), y, weight, n_cells, len(classes))
    return LeakModel(classes, cells, scores, np.bincount(y, weight) / weight.sum())


def choose_cells(
    stable_proba: FloatArray,
    X_unstable: FloatArray,
    y: IntArray,
    domain: npt.NDArray[Any],
    *,
    candidates: tuple[int, ...] = (2, 3, 4, 8),
    random_state: int = 0,
) -> int:
    """Choose the coarseness of U: learned on one half of the rows, scored on stress domains of the other.

    Parameters
    ----------
    stable_proba, X_unstable, y, domain : arrays
        As in `fit_leak_model`; y as class positions.
    candidates : tuple of int
        Numbers of cells. A finer one must beat the coarser ones by 0.2 points of mean accuracy.
    random_state : int
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y, d = rng.integers(0, 2, 4000), np.repeat([0, 1], 2000)
    >>> u = np.where(rng.random(4000) < 0.85, y, 1 - y)[:, None] + rng.normal(0, 0.01, (4000, 1))
    >>> p = np.where(rng.random(4000) < 0.75, y, 1 - y) * 0.5 + 0.25
    >>> choose_cells(np.c_[1 - p, p], u, y, d, candidates=(2, 4))
    2
    """
    learn = np.random.default_rng(random_state).random(len(y)) < 0.5
    proba, X, labels = stable_proba[~learn], X_unstable[~learn], y[~learn]
    guess = unstable_guess(X, labels, domain[~learn])
    domains = stress_domains(labels, guess, random_state=random_state)
    classes, accuracy = np.arange(stable_proba.shape[1]), {}
    for n in sorted(candidates):
        try:
            cell = Cells(X_unstable, y, domain, n, random_state).assign(X_unstable)
            if not _enough_rows(cell, y, domain):
                continue
            own = stable_proba[learn], X_unstable[learn], y[learn], domain[learn]
            model = _fitted(*own, classes, n, random_state)
        except ValueError:
            continue  # fewer values than cells, or too few rows in one: finer ones have fewer
        right = []
        for stress in domains:
            here = proba[stress.rows], X[stress.rows]
            right.append((model.adapt(*here).predict(*here) == labels[stress.rows]).mean())
        accuracy[n] = np.mean(right)
    if not accuracy:
        raise ValueError(
            f"None of {candidates} cells leaves {_FEWEST_ROWS} rows of each class in each cell; "
            "pass more labelled rows."
        )
    best = min(accuracy)
    for n, value in accuracy.items():
        if value > accuracy[best] + _GAIN:
            best = n
    return best


def _enough_rows(cell: IntArray, y: IntArray, domain: npt.NDArray[Any]) -> bool:
    """Whether every cell has enough rows of every class without any one domain, too."""
    names, place = np.unique(domain, return_inverse=True)
    counts = np.zeros((len(names), cell.max() + 1, y.max() + 1), dtype=np.intp)
    np.add.at(counts, (place, cell, y), 1)
    return bool((counts.sum(axis=0) - counts).min() >= _FEWEST_ROWS)


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
            if counts.min() < _FEWEST_ROWS:
                raise ValueError(
                    f"Cell {u} of {n_cells} holds {counts.min()} training rows of class number "
                    f"{counts.argmin()}; {_FEWEST_ROWS} are needed to learn the stable score's law there. "
                    "Use fewer cells or more rows."
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

    Examples
    --------
    >>> import numpy as np
    >>> mixture_shares(np.array([[0.75, 0.25]] * 600 + [[0.25, 0.75]] * 400)).round(2)
    array([0.7, 0.3])
    """
    n, n_classes = weights.shape
    scaled = weights / weights.max(axis=1, keepdims=True)

    def loss(q: FloatArray) -> tuple[float, FloatArray]:
        mix = scaled @ q
        value = -np.log(mix).sum() - _PSEUDO_COUNT * np.log(q).sum()
        gradient = -(scaled / mix[:, None]).sum(axis=0) - _PSEUDO_COUNT / q
        return value / n, gradient / n

    result = minimize(
        loss,
        np.full(n_classes, 1.0 / n_classes),
        jac=True,
        method="SLSQP",
        bounds=[(1e-6, 1.0)] * n_classes,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1.0, "jac": np.ones_like},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    q = np.clip(result.x, 1e-6, 1.0)
    return np.asarray(q / q.sum())
