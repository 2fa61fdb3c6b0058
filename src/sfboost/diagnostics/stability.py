"""Whether the stable features mean the same in every training domain.

Stability (Definition 4.1): P(Y | X_S) is the same in every training domain. Where it is not, P(X_S | Y) may
be: label shift. Class shares and places of rows may move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from scipy.stats import norm

from sfboost.diagnostics.moments import (
    holm_by_name,
    log_contrasts,
    principal_components,
    scaled,
    zero_mean_test,
)
from sfboost.diagnostics.result import CheckResult, judge, p_in_words
from sfboost.diagnostics.rows import CheckInputs, TrainingRows
from sfboost.marginal import floored_log
from sfboost.marginal.probabilities import FloatArray

#: Difference of the residual risk between domains, as a probability: beyond it f_S is another one.
_NOTICEABLE_RISK = 0.03
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
        if error > _NOTICEABLE_RISK:
            remedy = "Pass more rows: a noticeable difference would not be seen."
            return CheckResult("stability", "cannot tell", found, remedy, *result)
        return CheckResult("stability", "holds", found, "", *result)
    effect = max(test[3] for name, test in tests.items() if adjusted[name] < inputs.level)
    verdict = judge(smallest, effect, level=inputs.level, matters=_NOTICEABLE_RISK)
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


#: A slope this near to 0 or 1 is that, however small its error.
_NEAR_SLOPE = 0.1


def check_kind_of_stability(inputs: CheckInputs) -> CheckResult:
    """Slope of the domains' intercepts on their log class shares: 0 if P(Y | X_S) is stable, 1 if P(X_S | Y).

    One offset per class and domain is fitted to log f_S. Offsets and shares come from the same labels, whose
    noise would tie them together: so the mean of f_S in a domain, which no label of it enters, is the
    instrument, and each hypothesis is tested with the variance of (offset − slope · share) that it implies.
    """
    training = inputs.labelled
    parts = [_domain_offsets(training, rows) for _, rows in training.by_domain if _usable(training, rows)]
    scale = 0.0
    if len(parts) > 1:
        offsets, shares, instrument = (np.array([part[i] for part in parts]) for i in (0, 1, 4))
        sizes = np.array([len(part[2]) for part in parts], dtype=np.float64)
        contrast = sizes[:, None] * (instrument - sizes @ instrument / sizes.sum())
        scale = float((contrast * (shares - sizes @ shares / sizes.sum())).sum())
    if scale <= 0.0:
        found = "The class shares of the training domains do not differ as X_S does, or there is one domain."
        remedy = "Decide by knowledge: causes of the class say 'posterior', effects of it 'likelihood'."
        return CheckResult("kind of stability", "cannot tell", found, remedy)
    contrast = contrast / scale
    slope = float((contrast * (offsets - sizes @ offsets / sizes.sum())).sum())

    def error(supposed: float) -> float:
        moved = [
            (part[2] - supposed * part[3]) @ weights for part, weights in zip(parts, contrast, strict=True)
        ]
        return max(float(np.sqrt(sum(float((each**2).sum()) for each in moved))), 1e-12)

    p_posterior, p_likelihood = (
        float(2.0 * norm.sf(abs(slope - value) / error(value))) for value in (0.0, 1.0)
    )
    posterior = p_posterior >= inputs.level or abs(slope) <= _NEAR_SLOPE
    likelihood = p_likelihood >= inputs.level or abs(slope - 1.0) <= _NEAR_SLOPE
    found = (
        f"Domain intercepts follow the log class shares with slope {slope:.2f} ± {error(slope):.2f} "
        "(0: P(Y | X_S) is stable, 1: P(X_S | Y) is)."
    )
    details = {"p_posterior": p_posterior, "p_likelihood": p_likelihood}
    result = (slope, error(slope), p_posterior, details)
    if posterior and likelihood:
        remedy = "Both kinds fit: decide by what you know of the features, or pass more domains."
        return CheckResult("kind of stability", "cannot tell", found, remedy, *result)
    if posterior:
        return CheckResult("kind of stability", "holds", found, "", *result)
    if likelihood:
        remedy = (
            "Use transport='likelihood' (with the command under [model] of --config): within a class the "
            "features look the same in every domain, and what differs is how frequent the classes are."
        )
        return CheckResult("kind of stability", "violated", found, remedy, *result)
    remedy = "Neither kind fits: look for the stable columns that change."
    return CheckResult("kind of stability", "doubtful", found, remedy, *result)


def _usable(training: TrainingRows, rows: np.ndarray) -> bool:
    counts = np.bincount(training.y[rows], minlength=training.n_classes)
    return len(rows) >= _FEWEST_ROWS and counts.min() >= 5


def _domain_offsets(
    training: TrainingRows, rows: np.ndarray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Offsets a with mean softmax(log f + a) = class shares, log shares, influences on both, and log E[f]."""
    stable, onehot = training.stable[rows], training.onehot[rows]
    logs = floored_log(stable)
    share = onehot.mean(axis=0)
    offset = np.zeros(training.n_classes)
    centring = np.eye(len(offset)) - 1.0 / len(offset)
    for _ in range(50):
        fitted = softmax(logs + offset, axis=1)
        information = np.diag(fitted.mean(axis=0)) - fitted.T @ fitted / len(rows)
        step = np.linalg.pinv(information, rcond=1e-10, hermitian=True) @ (share - fitted.mean(axis=0))
        offset = offset + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-10:
            break
    influence = (onehot - fitted) @ np.linalg.pinv(information, rcond=1e-10, hermitian=True) / len(rows)
    share_influence = (onehot - share) / share / len(rows)
    return (
        centring @ offset,
        centring @ np.log(share),
        influence @ centring,
        share_influence @ centring,
        centring @ np.log(stable.mean(axis=0)),
    )
