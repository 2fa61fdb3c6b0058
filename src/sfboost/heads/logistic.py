"""Multinomial logistic regression on soft labels, fitted to convergence."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from sfboost.heads.base import SoftLabelMixin, normalised_weight
from sfboost.heads.linear import LinearFit, fit_linear
from sfboost.heads.objectives import CrossEntropy, Objective, log_proba_from_logits
from sfboost.heads.whitening import Whitening
from sfboost.marginal.probabilities import FloatArray


class SoftLogisticRegression(SoftLabelMixin):
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
        if not hasattr(self, "classes_"):
            self.classes_ = np.arange(targets.shape[1])
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
        self.n_iter_, self.objective_ = fit.n_iterations, fit.value
        self.n_features_in_ = len(fit.coef)
        if not hasattr(self, "classes_"):
            self.classes_ = np.arange(max(2, len(fit.intercept)))
        return self

    @property
    def linear_fit_(self) -> LinearFit:
        """The last fit, to start another one from."""
        check_is_fitted(self)
        return self._fit

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log-probabilities of shape (n, K)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return log_proba_from_logits(self.logits_of(X))

    def logits_of(self, X: Any) -> FloatArray:
        """Logits of clean rows, which are not checked again, of shape (n, columns)."""
        return np.asarray(X @ self.coef_.T) + self.intercept_
