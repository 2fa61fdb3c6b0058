"""The paper's head: a few Adam steps, stopped early."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from sfboost.heads.base import SoftLabelMixin, normalised_weight
from sfboost.heads.objectives import CrossEntropy, log_proba_from_logits, n_logit_columns
from sfboost.marginal.probabilities import FloatArray

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class AdamLogisticRegression(SoftLabelMixin):
    """Linear softmax head trained by minibatch Adam for a fixed, small number of steps.

    Weights start at zero, the intercept at the mean target.

    The tables of the paper need it (App. E: lr 0.01, 1 to 20 steps, batches of 2048). Twenty steps at
    0.01 move a weight by at most about 0.2: it is *meant* to stop early, and the scale of the features
    decides how far it gets.

    Parameters
    ----------
    steps : int, default=20
    learning_rate : float, default=0.01
    batch_size : int, default=2048
        Rows per step, drawn in random order without replacement until all were seen.
    random_state : int, default=0
        Seed of the order of the rows.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, d) and (1,) for two classes, else (K, d) and (K,)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-1.0], [1.0]])
    >>> head = AdamLogisticRegression(steps=20).fit(X, [[0.6, 0.4], [0.4, 0.6]])
    >>> head.coef_.round(2)
    array([[0.19]])

    References
    ----------
    .. [1] D. P. Kingma and J. Ba (2015). Adam: A Method for Stochastic Optimization. ICLR.
    .. [2] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36. App. E.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "steps": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        steps: int = 20,
        *,
        learning_rate: float = 0.01,
        batch_size: int = 2048,
        random_state: int | None = 0,
    ) -> None:
        self.steps = steps
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
        rng = np.random.default_rng(self.random_state)
        batches = _batches(X.shape[0], self.batch_size, rng)
        for step in range(1, self.steps + 1):
            rows = next(batches)
            batch, batch_weight = X[rows], weight[rows] / weight[rows].sum()
            logits = np.asarray(batch @ theta[:-1]) + theta[-1]
            _, by_logit = CrossEntropy(targets[rows], batch_weight).value_and_gradient(logits)
            gradient = np.vstack([np.asarray(batch.T @ by_logit), by_logit.sum(axis=0)])
            first = _BETA1 * first + (1 - _BETA1) * gradient
            second = _BETA2 * second + (1 - _BETA2) * gradient**2
            rate = self.learning_rate / (1 - _BETA1**step)
            theta = theta - rate * first / (np.sqrt(second / (1 - _BETA2**step)) + _EPSILON)
        self.coef_, self.intercept_ = theta[:-1].T, theta[-1]
        self.n_features_in_ = X.shape[1]
        self.n_iter_ = self.steps
        if not hasattr(self, "classes_"):
            self.classes_ = np.arange(targets.shape[1])
        return self

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log-probabilities of shape (n, K) after the last step."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return log_proba_from_logits(np.asarray(X @ self.coef_.T) + self.intercept_)


def _intercept_of(mean: FloatArray) -> FloatArray:
    """The logits of the mean target.

    The paper does not say where the head starts. From zero, a few small steps cannot reach the prior of
    unbalanced classes, and the correction multiplies what is missing by 1 / s.
    """
    log = np.log(np.clip(mean, 1e-6, None))
    return log[1:] - log[0] if len(log) == 2 else log - log.mean()


def _batches(n_rows: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Row numbers, `size` at a time, each row once per pass; a batch never crosses two passes."""
    while True:
        order = rng.permutation(n_rows)
        for first in range(0, n_rows, size):
            yield order[first : first + size]
