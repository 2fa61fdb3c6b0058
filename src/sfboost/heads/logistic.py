"""Logistic regression on soft labels: fitted to convergence, and by the paper's Adam steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from sfboost.heads.base import SoftLabelMixin, normalised_weight
from sfboost.heads.linear import LinearFit, fit_linear
from sfboost.heads.objectives import CrossEntropy, Objective, log_proba_from_logits, n_logit_columns
from sfboost.heads.whitening import Whitening
from sfboost.marginal.probabilities import FloatArray, IntArray

# Of Adam, as everywhere; and the gradient's largest entry where its steps are said to have arrived, since in
# batches they never come to rest.
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
_AT_REST = 0.02


class _LogisticHead(SoftLabelMixin):
    """Linear logits of fitted `coef_` and `intercept_`."""

    coef_: FloatArray
    intercept_: FloatArray

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log-probabilities of shape (n, K)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return log_proba_from_logits(self.logits_of(X))

    def logits_of(self, X: Any) -> FloatArray:
        """Logits of clean rows, which are not checked again, of shape (n, columns)."""
        return np.asarray(X @ self.coef_.T) + self.intercept_


class SoftLogisticRegression(_LogisticHead):
    """Logistic regression that takes soft labels without duplicating rows.

    A pseudo-label that is 70 % sure is 0.7 of a row of one class and 0.3 of one of the other; the cross-
    entropy to (0.7, 0.3) is the same, in half the rows.

    Minimises the weighted mean of the cross-entropy plus `l2`/2 · ‖coef‖² (the intercept is free), so
    that a row of weight two counts like two rows. scikit-learn's `C` is 1 / (l2 · n).

    Parameters
    ----------
    l2 : float, default=1e-3
        Strength of the penalty. Keep it positive: soft labels can be separated too.
    tol : float, default=1e-7
        Largest absolute entry of the gradient at the end.

    Attributes
    ----------
    coef_ : array of shape (1, d) for two classes, else (K, d)
    intercept_ : array of shape (1,) or (K,)
    classes_ : array of shape (K,)
    n_iter_ : int
    converged_ : bool
    objective_ : float
        Value of the penalised objective at the end.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-1.0], [1.0]])
    >>> head = SoftLogisticRegression(l2=1e-9).fit(X, [[0.8, 0.2], [0.3, 0.7]])
    >>> head.predict_proba(X).round(3)
    array([[0.8, 0.2],
           [0.3, 0.7]])

    References
    ----------
    .. [1] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36. Algorithm 1 line 4.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "l2": [Interval(Real, 0.0, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
    }

    def __init__(self, l2: float = 1e-3, *, tol: float = 1e-7) -> None:
        self.l2 = l2
        self.tol = tol

    def fit_soft(self, X: Any, targets: FloatArray, sample_weight: FloatArray | None = None) -> Self:
        """Fit to clean rows and to targets of shape (n, K) whose rows sum to one."""
        self._validate_params()
        self._number_classes(targets.shape[1])
        return self.fit_objective(X, CrossEntropy(targets, normalised_weight(sample_weight, X.shape[0])))

    def fit_objective(
        self,
        X: Any,
        objective: Objective,
        start: LinearFit | None = None,
        whitening: Whitening | None = None,
    ) -> Self:
        """Minimise any objective of the logits (the likelihood, …) plus this head's penalty."""
        fit = fit_linear(X, objective, l2=self.l2, start=start, tolerance=self.tol, whitening=whitening)
        return self.take(fit)

    def take(self, fit: LinearFit) -> Self:
        """Take over what was fitted elsewhere."""
        self._fit = fit
        self.coef_, self.intercept_ = fit.coef.T.copy(), fit.intercept.copy()
        self.n_iter_, self.objective_, self.converged_ = fit.n_iterations, fit.value, fit.converged
        self.n_features_in_ = len(fit.coef)
        self._number_classes(max(2, len(fit.intercept)))
        return self

    @property
    def linear_fit_(self) -> LinearFit:
        """The last fit, to start another one from."""
        check_is_fitted(self)
        return self._fit


class AdamLogisticRegression(_LogisticHead):
    """The paper's head: a linear softmax trained by some passes of minibatch Adam, and no penalty.

    Weights start at zero, the intercept at the mean target. A step moves a weight by at most about the
    learning rate: how many there are, and the scale of the features, decide how far it gets. The paper stops
    after 1 to 20 (App. E) and does not say of what: twenty batches of 2048 rows do not move far enough on
    its own example, twenty passes in batches of 100 do.

    Parameters
    ----------
    steps : int, optional
        Batches to stop after, in place of `passes`.
    passes : int, default=20
        How often each row is seen.
    learning_rate : float, default=0.01
    batch_size : int, default=100
        Rows per step, drawn in random order without replacement until all were seen.
    random_state : int, default=0
        Seed of the order of the rows.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, d) and (1,) for two classes, else (K, d) and (K,)
    n_iter_ : int
    converged_ : bool
        Whether the loss of all rows is about level where the steps ended.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-1.0], [1.0]])
    >>> head = AdamLogisticRegression(steps=20).fit(X, [[0.6, 0.4], [0.4, 0.6]])
    >>> head.coef_.round(2), head.converged_
    (array([[0.19]]), False)

    References
    ----------
    .. [1] D. P. Kingma and J. Ba (2015). Adam: A Method for Stochastic Optimization. ICLR.
    .. [2] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36. App. E.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "steps": [Interval(Integral, 1, None, closed="left"), None],
        "passes": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        steps: int | None = None,
        *,
        passes: int = 20,
        learning_rate: float = 0.01,
        batch_size: int = 100,
        random_state: int | None = 0,
    ) -> None:
        self.steps = steps
        self.passes = passes
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.random_state = random_state

    def fit_soft(self, X: Any, targets: FloatArray, sample_weight: FloatArray | None = None) -> Self:
        """Fit to clean rows and to targets of shape (n, K) whose rows sum to one."""
        self._validate_params()
        weight = normalised_weight(sample_weight, X.shape[0])
        columns = n_logit_columns(targets.shape[1])
        theta = np.zeros((X.shape[1] + 1, columns))
        theta[-1] = _intercept_of(weight @ targets)
        first, second = np.zeros_like(theta), np.zeros_like(theta)

        def gradient_of(some: Any, labels: FloatArray, share: FloatArray) -> FloatArray:
            logits = np.asarray(some @ theta[:-1]) + theta[-1]
            _, by_logit = CrossEntropy(labels, share).value_and_gradient(logits)
            return np.vstack([np.asarray(some.T @ by_logit), by_logit.sum(axis=0)])

        used = np.flatnonzero(weight)  # a row of weight zero is no row
        self.n_iter_ = self.steps or self.passes * -(-len(used) // self.batch_size)
        batches = _batches(used, self.batch_size, np.random.default_rng(self.random_state))
        for step, rows in enumerate(islice(batches, self.n_iter_), 1):
            gradient = gradient_of(X[rows], targets[rows], weight[rows] / weight[rows].sum())
            first = _BETA1 * first + (1 - _BETA1) * gradient
            second = _BETA2 * second + (1 - _BETA2) * gradient**2
            rate = self.learning_rate / (1 - _BETA1**step)
            theta = theta - rate * first / (np.sqrt(second / (1 - _BETA2**step)) + _EPSILON)
        self.converged_ = bool(np.abs(gradient_of(X, targets, weight)).max() <= _AT_REST)
        self.coef_, self.intercept_ = theta[:-1].T, theta[-1]
        self.n_features_in_ = X.shape[1]
        self._number_classes(targets.shape[1])
        return self


def _intercept_of(mean: FloatArray) -> FloatArray:
    """The logits of the mean target.

    The paper does not say where the head starts. From zero, a few small steps cannot reach the prior of
    unbalanced classes, and the correction multiplies what is missing by 1 / s.
    """
    log = np.log(np.clip(mean, 1e-6, None))
    return log[1:] - log[0] if len(log) == 2 else log - log.mean()


def _batches(rows: IntArray, size: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Row numbers, `size` at a time, each row once per pass; a batch never crosses two passes."""
    while True:
        order = rng.permutation(rows)
        for first in range(0, len(rows), size):
            yield order[first : first + size]
