"""Stability (Definition 4.1): P(Y | X_S) is the same in every training domain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfboost.diagnostics.independence import log_contrasts, principal_components
from sfboost.diagnostics.inputs import CheckInputs, TrainingRows
from sfboost.diagnostics.moments import holm_by_name, scaled, zero_mean_test
from sfboost.diagnostics.result import CheckResult, judge, p_in_words
from sfboost.marginal.probabilities import FloatArray

#: Difference of the residual risk between domains, as a probability: beyond it f_S is another one.
_NOTICEABLE = 0.03
_FEWEST_ROWS = 50
_MOST_STABLE = 5


def check_stability(inputs: CheckInputs) -> CheckResult:
    """Whether Y − f_S depends on the domain, given X_S: one robust test a domain, Holm over domains.

    The risk difference of a domain is its mean of Y − f_S (worst class) after the common part is removed.
    """
    training = inputs.labelled
    large = [(name, rows) for name, rows in training.by_domain if len(rows) >= _FEWEST_ROWS]
    if len(large) < 2:
        found = f"{len(large)} training domain(s) have {_FEWEST_ROWS} rows or more: two are needed."
        return CheckResult("stability", "cannot tell", found, "Pass rows of more training domains.")
    common = _CommonErrors.of(training)
    tests = {name: _domain_test(training, rows, common) for name, rows in large}
    adjusted = holm_by_name({name: test[0] for name, test in tests.items()})
    worst = max(tests, key=lambda name: tests[name][1])
    size, error = tests[worst][1], tests[worst][2]
    smallest = min(adjusted.values())
    details = {"p_by_domain": adjusted, "by_domain": {name: test[1] for name, test in tests.items()}}
    found = (
        f"The largest risk difference is {size:.3f} ± {error:.3f} in domain {worst} (adjusted "
        f"{p_in_words(smallest)}, the smallest over {len(tests)} domains)."
    )
    result = (size, error, smallest, details)
    if smallest >= inputs.level:
        if error > _NOTICEABLE:
            remedy = "Pass more rows: a noticeable difference would not be seen."
            return CheckResult("stability", "cannot tell", found, remedy, *result)
        return CheckResult("stability", "holds", found, "", *result)
    effect = max(test[3] for name, test in tests.items() if adjusted[name] < inputs.level)
    verdict = judge(smallest, effect, level=inputs.level, matters=_NOTICEABLE)
    remedy = "Drop stable columns whose meaning changes; see 'kind of stability' for label shift."
    remedy = "" if verdict == "holds" else remedy
    return CheckResult("stability", verdict, found, remedy, *result)


@dataclass(frozen=True, eq=False)
class _CommonErrors:
    """What f_S may get wrong everywhere alike, by class: an orthonormal basis and the weights in it."""

    logs: FloatArray
    weights: tuple[FloatArray, ...]
    bases: tuple[FloatArray, ...]
    n_columns: int

    @classmethod
    def of(cls, training: TrainingRows) -> _CommonErrors:
        logs = log_contrasts(training.stable)
        design = _common_design(training, logs)
        # The score of a logistic model weighs its design by f (1 − f).
        weights = tuple(np.sqrt(np.maximum(f * (1.0 - f), 1e-6)) for f in training.stable.T)
        return cls(logs, weights, tuple(_basis(design * w[:, None]) for w in weights), design.shape[1])

    def remove(self, values: FloatArray, k: int) -> FloatArray:
        """Values minus the part that the common design explains, by least squares weighted for class k."""
        weighted = values * self.weights[k][:, None]
        return (weighted - self.bases[k] @ (self.bases[k].T @ weighted)) / self.weights[k][:, None]


def _basis(design: FloatArray) -> FloatArray:
    """Orthonormal columns with the span of `design`, whose columns may depend on each other."""
    values, vectors = np.linalg.eigh(design.T @ design)
    kept = values > 1e-10 * values.max()
    return design @ (vectors[:, kept] / np.sqrt(values[kept]))


def _domain_test(
    training: TrainingRows, rows: np.ndarray, common: _CommonErrors
) -> tuple[float, float, float, float]:
    """p-value, risk difference, its error, and the largest effect of one domain against the others.

    Moments: (Y − f) times (1, log f) within the domain, the common part removed, so that what f_S gets wrong
    everywhere is not held against one domain. The effect is the risk difference, or how much the risk varies
    with log f within the domain (one standard deviation of it), whichever is larger.
    """
    inside = np.zeros(len(training.y))
    inside[rows] = 1.0
    logs = common.logs
    moments, differences, errors, tilts = [], [], [], []
    for k in range(1 if training.n_classes == 2 else 0, training.n_classes):
        risk = training.onehot[:, k] - training.stable[:, k]
        column = min(max(k - 1, 0), logs.shape[1] - 1)
        own = np.column_stack([inside, inside * (logs[:, column] - logs[rows, column].mean())])
        cleaned = common.remove(own, k)
        moments.append(cleaned[:, :1] * risk[:, None])
        if k or training.n_classes == 2:
            moments.append(cleaned[:, 1:] * risk[:, None])
        scale = float((cleaned[:, 0] * inside).mean())
        differences.append(abs(float(moments[-1 if not k else -2].mean())) / max(scale, 1e-12))
        spread = float((cleaned[:, 0] * risk).std(ddof=1))
        errors.append(spread / np.sqrt(len(risk)) / max(scale, 1e-12))
        slope = float((cleaned[:, 1] * risk).sum()) / max(float((cleaned[:, 1] * own[:, 1]).sum()), 1e-12)
        tilts.append(abs(slope) * float(own[rows, 1].std()))
    if training.n_classes > 2:
        del moments[0]  # the classes' residuals sum to zero
    test = zero_mean_test(np.column_stack(moments), lost=common.n_columns)
    worst = int(np.argmax(differences))
    return test.p_value, differences[worst], errors[worst], max(*differences, *tilts)


def _common_design(training: TrainingRows, logs: FloatArray) -> FloatArray:
    """What f_S may get wrong everywhere alike: offset, temperature, and X_S where it is given."""
    parts = [np.ones((len(logs), 1)), logs]
    if training.X_stable is not None:
        X = training.X_stable
        parts.append(X if X.shape[1] <= _MOST_STABLE else principal_components(X, _MOST_STABLE))
    return scaled(np.column_stack(parts))
