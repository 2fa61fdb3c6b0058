"""Leak correction: ours, not the paper's.

The paper's correction assumes that X_S and X_U are independent given Y. A learned f_S always leaks a little
of the unstable features, and the correction multiplies the leak by 1/s. Here the law of the stable score T
= f_S given both Y and the unstable features is *learned where there are labels* and carried to the new
domain:

    assumption: P(T | Y, U) is the same in every domain, with U a coarse cell of the unstable features.

It needs neither complementarity nor calibration (even a plain ERM score will do), but it is another
assumption: it fails if P(X_S | Y) moves. The training domains can test it: from the others' P(T | Y, U)
each domain's Pr[Y | U] is recovered blind and compared with its labels. Where they disagree the correction
is refused.

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

from sfboost.diagnostics.unstable_guess import unstable_guess
from sfboost.marginal import as_probability_matrix, floored_log
from sfboost.marginal.probabilities import FloatArray, IntArray, as_class_shares, log_softmax
from sfboost_lab.leak_cells import FEWEST_ROWS, Cells, ScoreModel, log_odds, mixture_shares, share_error
from sfboost_lab.stress import Adapter, stress_domains, stress_test

# Largest error of a training domain's Pr[Y | U], learned from the others, that is accepted.
_TOLERANCE = 0.1


class LeakRefusedError(ValueError):
    """The training domains disagree about P(T | Y, U): the correction's assumption fails."""


@dataclass(frozen=True, eq=False)
class Disagreement:
    """How wrong each training domain's Pr[Y | U] comes out when learned from the others.

    Attributes
    ----------
    domains : tuple
        Names.
    error, standard_error : arrays of shape (domains,)
        Mean over rows of the total-variation distance to the labels' shares, and its sampling scale.
    tolerance : float
        The largest error that is accepted.
    """

    domains: tuple[Any, ...]
    error: FloatArray
    standard_error: FloatArray
    tolerance: float

    @property
    def excess(self) -> FloatArray:
        """Error beyond 1.64 standard errors."""
        return np.maximum(self.error - 1.64 * self.standard_error, 0.0)

    @property
    def acceptable(self) -> bool:
        """Whether every domain's excess is within the tolerance."""
        return bool((self.excess <= self.tolerance).all())


@dataclass(frozen=True, eq=False)
class LeakModel:
    """P(T | Y, U) as learned on the training domains. Made by `fit_leak_model`.

    Attributes
    ----------
    classes : array of shape (K,)
    n_cells : int
        Coarseness of U.
    disagreement : Disagreement
        The test of the assumption on the training domains.
    prior : array of shape (K,)
        Class shares of the training domains, each of which counts once.
    """

    classes: npt.NDArray[Any]
    n_cells: int
    disagreement: Disagreement
    _cells: Cells
    _scores: ScoreModel
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
        weights, cell = self._weights(stable_proba, X_unstable)
        everywhere = mixture_shares(weights)
        shares = np.tile(everywhere, (self.n_cells, 1))  # a cell that the domain does not have
        for u in range(self.n_cells):
            if (cell == u).any():
                shares[u] = mixture_shares(weights[cell == u])
        return LeakAdaptation(self, shares, np.bincount(cell, minlength=self.n_cells) / len(cell))

    def flatten(self, stable_proba: Any, X_unstable: Any, *, prior: Any = None) -> FloatArray:
        """Take the leak out of a score: Pr[Y | T] as it would be were Y independent of U, of shape (n, K).

        The result is what the paper's correction wants of f_S. A calibrated score without a leak stays what
        it is.

        Parameters
        ----------
        stable_proba, X_unstable : array-like
            As in `adapt`.
        prior : array-like of shape (K,), optional
            Class shares; those of the training domains by default. Under label shift `adapt(...).prior` has
            those of the new domain.
        """
        weights, _ = self._weights(stable_proba, X_unstable)
        shares = self.prior if prior is None else as_class_shares(prior, len(self.classes))
        joint = weights * shares
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def _weights(self, stable_proba: Any, X_unstable: Any) -> tuple[FloatArray, IntArray]:
        proba = as_probability_matrix(stable_proba, n_classes=len(self.classes))
        X = np.asarray(X_unstable, dtype=np.float64)
        if X.ndim != 2 or len(X) != len(proba):
            raise ValueError(
                f"X_unstable must have shape ({len(proba)}, d) like stable_proba, got {X.shape}."
            )
        cell = self._cells.assign(X)
        return self._scores.weights(log_odds(proba), cell), cell


@dataclass(frozen=True, eq=False)
class LeakAdaptation:
    """A leak model with Pr[Y | U] of one new domain.

    Attributes
    ----------
    model : LeakModel
    shares : array of shape (cells, K)
        Pr[Y | U = u] in the new domain.
    cell_sizes : array of shape (cells,)
        Pr[U = u] there.
    """

    model: LeakModel
    shares: FloatArray
    cell_sizes: FloatArray

    @property
    def prior(self) -> FloatArray:
        """Class shares of the new domain."""
        return np.asarray(self.cell_sizes @ self.shares)

    def predict_proba(self, stable_proba: Any, X_unstable: Any) -> FloatArray:
        """Pr[Y | T, U] in the new domain, of shape (n, K)."""
        weights, cell = self.model._weights(stable_proba, X_unstable)
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
    """Learn P(T | Y, U) on labelled domains and test that they agree about it.

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

    Returns
    -------
    LeakModel

    Raises
    ------
    LeakRefusedError
        If the domains disagree.

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
    _check_rows(proba, X, codes, classes, domain)
    if n_cells == "auto":
        n_cells = choose_cells(proba, X, codes, domain, random_state=random_state)
    cells = Cells(X, codes, domain, int(n_cells), random_state)
    cell, odds = cells.assign(X), log_odds(proba)
    disagreement = _test_domains(odds, cell, codes, domain, int(n_cells))
    if not disagreement.acceptable:
        worst = int(disagreement.excess.argmax())
        raise LeakRefusedError(
            "The training domains disagree about the stable score given label and unstable "
            "features: Pr[Y | U] of "
            f"domain {disagreement.domains[worst]!r}, learned from the others, is wrong by "
            f"{disagreement.error[worst]:.3f} ± {disagreement.standard_error[worst]:.3f} "
            f"({_TOLERANCE:g} is accepted). "
            "Use the paper's correction (sfboost.adapt)."
        )
    weight = _domain_weight(domain)
    scores = ScoreModel(odds, cell, codes, weight, int(n_cells), len(classes))
    return LeakModel(classes, int(n_cells), disagreement, cells, scores, _class_shares(codes, weight))


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

    Returns
    -------
    int

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
    rng = np.random.default_rng(random_state)
    learn = rng.random(len(y)) < 0.5
    score = ~learn
    domains = stress_domains(
        y[score], unstable_guess(X_unstable[score], y[score], domain[score]), random_state=random_state
    )
    tables = {}
    for n in sorted(candidates):
        try:
            if not _enough_rows(Cells(X_unstable, y, domain, n, random_state).assign(X_unstable), y, domain):
                continue
            model = _untested_model(
                stable_proba[learn], X_unstable[learn], y[learn], domain[learn], n, random_state
            )
        except ValueError:
            continue  # fewer values than cells, or too few rows in one: finer ones have fewer
        tables[n] = stress_test(
            {str(n): _adapter(model)},
            stable_proba[score],
            X_unstable[score],
            y[score],
            domains,
        ).accuracy.mean()
    if not tables:
        raise ValueError(
            f"None of {candidates} cells leaves {FEWEST_ROWS} rows of each class in each cell; "
            "pass more labelled rows."
        )
    best = min(tables)
    for n, accuracy in tables.items():
        if accuracy > tables[best] + 0.002:
            best = n
    return best


def _enough_rows(cell: IntArray, y: IntArray, domain: npt.NDArray[Any]) -> bool:
    """Whether every cell has enough rows of every class without any one domain, too: the test needs them."""
    names, place = np.unique(domain, return_inverse=True)
    counts = np.zeros((len(names), cell.max() + 1, y.max() + 1), dtype=np.intp)
    np.add.at(counts, (place, cell, y), 1)
    return bool((counts.sum(axis=0) - counts).min() >= FEWEST_ROWS)


def _untested_model(
    proba: FloatArray, X: FloatArray, y: IntArray, domain: npt.NDArray[Any], n_cells: int, seed: int
) -> LeakModel:
    """A model for the choice of cells alone; whether the domains agree is asked once that is made."""
    cells = Cells(X, y, domain, n_cells, seed)
    weight = _domain_weight(domain)
    scores = ScoreModel(log_odds(proba), cells.assign(X), y, weight, n_cells, proba.shape[1])
    untested = Disagreement((), np.empty(0), np.empty(0), 0.0)
    shares = _class_shares(y, weight)
    return LeakModel(np.arange(proba.shape[1]), n_cells, untested, cells, scores, shares)


def _adapter(model: LeakModel) -> Adapter:
    return lambda proba, X: model.adapt(proba, X).predict_proba(proba, X)


def _check_rows(
    proba: FloatArray, X: FloatArray, y: IntArray, classes: npt.NDArray[Any], domain: npt.NDArray[Any]
) -> None:
    if X.ndim != 2 or not len(proba) == len(X) == len(y) == len(domain):
        raise ValueError(
            f"stable_proba, X_unstable, y and domain need the same rows, got {len(proba)}, "
            f"{X.shape}, {len(y)} and "
            f"{len(domain)}."
        )
    if len(classes) != proba.shape[1]:
        raise ValueError(
            f"stable_proba has {proba.shape[1]} columns, y has the {len(classes)} classes {classes}."
        )
    if len(np.unique(domain)) < 2:
        raise ValueError(
            "Leak correction tests its assumption by comparing training domains and got one. Pass "
            "at least two, or "
            "use the paper's correction (sfboost.adapt)."
        )


def _class_shares(y: IntArray, weight: FloatArray) -> FloatArray:
    return np.asarray(np.bincount(y, weight) / weight.sum())


def _domain_weight(domain: npt.NDArray[Any]) -> FloatArray:
    _, place, counts = np.unique(domain, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / counts[place])


def _test_domains(
    odds: FloatArray, cell: IntArray, y: IntArray, domain: npt.NDArray[Any], n_cells: int
) -> Disagreement:
    """Learn from all domains but one, recover that one's Pr[Y | U] blind, compare with its labels."""
    names, n_classes = np.unique(domain), int(y.max()) + 1
    errors, deviations = [], []
    for name in names:
        here = domain == name
        others = ScoreModel(
            odds[~here], cell[~here], y[~here], _domain_weight(domain[~here]), n_cells, n_classes
        )
        weights = others.weights(odds[here], cell[here])
        error = variance = 0.0
        for u in np.unique(cell[here]):
            rows = cell[here] == u
            share, q = rows.mean(), mixture_shares(weights[rows])
            truth = np.bincount(y[here][rows], minlength=n_classes) / rows.sum()
            error += share * 0.5 * np.abs(q - truth).sum()
            labels = 0.5 * np.sqrt(truth * (1 - truth) / rows.sum()).sum()
            variance += share * np.hypot(share_error(weights[rows], q), labels)
        errors.append(error)
        deviations.append(variance)
    return Disagreement(tuple(names.tolist()), np.array(errors), np.array(deviations), _TOLERANCE)
