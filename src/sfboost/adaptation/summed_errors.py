"""Standard errors of an adaptation from `LikelihoodSums` alone: what `uncertainty` does with the rows."""

from __future__ import annotations

import numpy as np

from sfboost.adaptation.likelihood_sums import LikelihoodSums
from sfboost.adaptation.standardize import Standardizer
from sfboost.adaptation.uncertainty import Estimate, Uncertainty, raw_units
from sfboost.heads import SoftLogisticRegression
from sfboost.marginal import PseudoLabelStatistics
from sfboost.marginal.probabilities import FloatArray


def penalty_by_parameter(theta: FloatArray, l2: float) -> FloatArray:
    """L2 of each parameter of a head, row by row: none of its intercepts, which are last."""
    return np.column_stack([np.full_like(theta[:, :-1], l2), np.zeros(len(theta))]).ravel()


def influence_map(sums: LikelihoodSums, theta: FloatArray, l2: float, prior_is_estimated: bool) -> FloatArray:
    """The matrix A with A v = influence of a row on θ, for v as in `LikelihoodSums.products`."""
    size, n_classes = theta.size, len(sums.unstable)
    ridge = penalty_by_parameter(theta, l2)
    mapped = np.zeros((size, len(sums.products)))
    mapped[:, :size] = np.eye(size)
    mapped[:, -1] = -ridge * theta.ravel()
    if prior_is_estimated:
        by_prior = sums.by_prior[:size] / sums.n_rows
        mean = sums.products[size : size + n_classes, -1] / sums.n_rows
        mapped[:, size : size + n_classes] = by_prior
        mapped[:, -1] -= by_prior @ mean
    information = sums.hessian / sums.n_rows + np.diag(ridge)
    # The shared intercept of K logit columns is free: the pseudo-inverse leaves it alone.
    return np.asarray(np.linalg.pinv(information, rcond=1e-9, hermitian=True) @ mapped)


def summed_covariance(sums: LikelihoodSums, influence: FloatArray) -> FloatArray:
    """Covariance of the head's parameters."""
    return influence @ sums.products @ influence.T / sums.n_rows**2


def summed_uncertainty(
    sums: LikelihoodSums,
    statistics: PseudoLabelStatistics,
    head: SoftLogisticRegression,
    standardizer: Standardizer,
    influence: FloatArray,
    alarm: str | None,
    prior_is_estimated: bool,
) -> Uncertainty:
    """All that `uncertainty_of` gives, at the head that the sums were taken at."""
    basics = _basics(sums, statistics, influence.shape[0])
    covariance = summed_covariance(sums, influence)
    coef, intercept = raw_units(head, covariance, standardizer)
    if alarm:
        return Uncertainty(*basics, coef, intercept, head_covariance=covariance, withheld=alarm)
    accuracies: list[Estimate] = []
    size, n_classes = len(influence), len(sums.unstable)
    for i in (0, 1):
        row = sums.accuracy_slope[i] / sums.n_rows @ influence
        row[i - 3] += 1.0
        mean = sums.products[i - 3, -1] / sums.n_rows
        row[-1] -= mean
        by_prior = prior_is_estimated * sums.by_prior[size + i] / sums.n_rows
        row[size : size + n_classes] += by_prior
        row[-1] -= by_prior @ sums.products[size : size + n_classes, -1] / sums.n_rows
        accuracies.append(Estimate(np.array(mean), _error(sums, row)))
    adapted, stable = accuracies
    return Uncertainty(*basics, coef, intercept, adapted, stable, covariance)


def _error(sums: LikelihoodSums, row: FloatArray) -> FloatArray:
    """Standard error of the mean of row · v, which has mean zero."""
    return np.sqrt(max(float(row @ sums.products @ row), 0.0)) / np.asarray(sums.n_rows)


def _basics(
    sums: LikelihoodSums, statistics: PseudoLabelStatistics, size: int
) -> tuple[Estimate, Estimate, Estimate]:
    """Prior, ε and s."""
    n, n_classes = sums.n_rows, statistics.n_classes
    f, squares = slice(size, size + n_classes), slice(size + n_classes, size + 2 * n_classes)
    prior, confusion = statistics.prior, statistics.confusion
    total = np.where(statistics.total > 0.0, statistics.total, 1.0)
    spread = np.diag(statistics.cross) - n * prior**2
    # Of (f_y f_y' − ε_yy' f_y') / Σ f_y', squared and summed.
    first, second = sums.products[f, squares], sums.products[squares, squares]
    squared = second - 2.0 * confusion * first + confusion**2 * np.diag(statistics.cross)
    trace = np.zeros(len(sums.products))
    trace[squares] = n / total / (n_classes - 1)
    trace[f] = -np.diag(confusion) * n / total / (n_classes - 1)
    claimed = np.array((np.trace(confusion) - 1.0) / (n_classes - 1))
    return (
        Estimate(prior, np.sqrt(np.maximum(spread, 0.0)) / n),
        Estimate(confusion, np.sqrt(np.maximum(squared, 0.0)) / total),
        Estimate(claimed, _error(sums, trace)),
    )
