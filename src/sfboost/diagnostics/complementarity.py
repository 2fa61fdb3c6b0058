"""Whether X_S and X_U are independent given Y (Definition 4.3), by labelled domains.

What is measured is the leak of f_S, how much of X_U it shows within a class. The corrected Pr[Y | u] is off
by ε⁻¹ B(u), B(u) = Σ_y q_y(u) L(u, y), L(u, y) = E[f_S | y, u] − E[f_S | y] (two classes: B/s). The size of L
is that of the regressions of f_S on u within each class; it does not depend on how u relates to the class in
that domain, so it can be carried to another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from sfboost.diagnostics.moments import basis, conditional_independence, holm_by_name
from sfboost.diagnostics.result import CheckResult, judge, p_in_words
from sfboost.diagnostics.rows import CheckInputs, TrainingRows
from sfboost.marginal.probabilities import FloatArray, IntArray

#: One-sided 5 %: a leak is certain as far as it is beyond sampling error.
_LOWER = 1.64
# The level of δ. A leak helps as often as it hurts: one new domain in twenty is hurt by a larger one.
_LEVEL = 0.90
# A prior guess of how leaks differ between domains, by a quarter of their mean square, worth three
# domains: two alone would say anything (Student's t with one degree of freedom), and one nothing.
_PRIOR_SPREAD, _PRIOR_DOMAINS = 0.25, 3.0


@dataclass(frozen=True)
class DomainLeak:
    """Root mean square of L(u, y) in one domain, for the pseudo-class where it is largest.

    Attributes
    ----------
    size : float
        Estimate, noise subtracted; zero if noise explains all of it.
    lower : float
        The part beyond 1.64 standard errors.
    informativeness : float
        s as measured with labels: what the leak is divided by.
    square, square_error : float
        The mean square, noise subtracted and below zero where noise happens to explain more, and its standard
        error.
    """

    domain: Any
    size: float
    lower: float
    informativeness: float
    n_rows: int
    square: float
    square_error: float

    @property
    def relative(self) -> float:
        """L / s: the leak as an error of Pr[Y | X_U]."""
        return self.size / max(self.informativeness, 1e-12)

    @property
    def certain(self) -> float:
        """The same of the part beyond 1.64 standard errors."""
        return self.lower / max(self.informativeness, 1e-12)


def domain_leak(
    stable: FloatArray, X: FloatArray, y: IntArray, domain: Any, weight: FloatArray | None = None
) -> DomainLeak:
    """The leak of f_S into linear functions of X_U in one labelled domain.

    Parameters
    ----------
    stable : array of shape (n, K)
        Held-out f_S.
    X : array of shape (n, d)
        Unstable features.
    y : integer array of shape (n,)
    weight : array of shape (n,), optional
        Only ratios matter: a row of weight two moves the estimate like two rows, but is one observation.

    Examples
    --------
    >>> from sfboost_lab.testing import Dials, simulate
    >>> none, some = (simulate(Dials(new_violation=size), seed=0).new for size in (0.0, 0.5))
    >>> for rows in (none, some):
    ...     leak = domain_leak(rows.posterior, rows.X_unstable, rows.y, "a")
    ...     print(f"{leak.lower:.2f} {leak.size:.2f}")
    0.00 0.01
    0.09 0.09
    """
    weight = np.ones(len(y)) if weight is None else weight
    square, variance = np.zeros(stable.shape[1]), np.zeros(stable.shape[1])
    # Class by class: leaks of opposite sign must not cancel (raw CE-DD).
    for label in np.unique(y):
        rows = y == label
        share = float(weight[rows].sum() / weight.sum())
        within = weight[rows] / weight[rows].sum()
        part, error = _projection(_centred(stable[rows], within), _centred(X[rows], within), within)
        square += share * part
        variance += (share * error) ** 2
    error = np.sqrt(variance)
    worst, bound = int(np.argmax(square)), square - _LOWER * error
    return DomainLeak(
        domain=domain,
        size=float(np.sqrt(max(square[worst], 0.0))),
        lower=float(np.sqrt(max(bound.max(), 0.0))),
        informativeness=measured_informativeness(stable, y, weight),
        n_rows=len(y),
        square=float(square[worst]),
        square_error=float(error[worst]),
    )


def _centred(values: FloatArray, share: FloatArray) -> FloatArray:
    return values - share @ values


def measured_informativeness(stable: FloatArray, y: IntArray, weight: FloatArray | None = None) -> float:
    """S with labels: (tr Pr[Ŷ | Y] − 1) / (K − 1) over the classes that are present."""
    present = np.unique(y)
    if len(present) < 2:
        return 0.0
    weight = np.ones(len(y)) if weight is None else weight
    trace = sum(float(np.average(stable[y == label, label], weights=weight[y == label])) for label in present)
    return max(0.0, (trace - 1.0) / (len(present) - 1))


def _projection(centred: FloatArray, Z: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean square of the linear regression of each column on Z, noise subtracted, and its error.

    `share` are weights that sum to one. Squared in the noise, they make it that of weighted means.
    """
    gram = (Z * share[:, None]).T @ Z
    # One-hot columns depend on each other: without a clear limit rounding would count as a direction.
    inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
    squares, errors = [], []
    for column in centred.T:
        slope = inverse @ (Z.T @ (share * column))
        residual = column - Z @ slope
        meat = (Z * ((share * residual) ** 2)[:, None]).T @ Z
        noise = inverse @ meat  # Σ V with V = Σ⁻¹ M Σ⁻¹
        variance = noise @ inverse
        squares.append(slope @ gram @ slope - np.trace(noise))
        linear = 4.0 * slope @ gram @ variance @ gram @ slope
        errors.append(np.sqrt(max(linear + 2.0 * np.trace(noise @ noise), 0.0)))
    return np.array(squares), np.array(errors)


def training_leak(leaks: tuple[DomainLeak, ...]) -> float | None:
    """δ of the guard: how much one more domain of the same kind may leak; more in one of ten.

    The upper end of a random-effects prediction interval of the mean square L̄ over E domains,
    L̄ + t √(τ²(1 + 1/E) + SE²): domains differ (τ), and their mean is known up to sampling error (SE). τ² and
    the degrees of freedom of t count a prior guess as three domains, so that the rule holds for one and two
    domains too: with one the guess is all that says how domains differ. Few rows make δ larger. None where
    nothing was measured, which is not zero.

    Examples
    --------
    >>> from sfboost_lab.testing import Dials, simulate
    >>> def delta(n_rows):
    ...     parts = simulate(Dials(n_training_rows=n_rows, training_violation=0.5), seed=0).training
    ...     return training_leak(tuple(domain_leak(p.posterior, p.X_unstable, p.y, "a") for p in parts))
    >>> delta(300) > delta(20_000) > 0.08
    True

    References
    ----------
    .. [1] J. P. T. Higgins, S. G. Thompson and D. J. Spiegelhalter (2009). A Re-Evaluation of Random-
       Effects Meta-Analysis. Journal of the Royal Statistical Society A 172.
    """
    if not leaks:
        return None
    values = np.array([leak.square for leak in leaks])
    errors = np.array([leak.square_error for leak in leaks])
    # A domain whose few rows happen to agree must not count for more than it knows.
    noise = float((np.maximum(errors, np.median(errors) / 2.0) ** 2).mean())
    count, mean = len(leaks), float(values.mean())
    between = max(float(values.var(ddof=1)) - noise, 0.0) if count > 1 else 0.0
    freedom = count - 1 + _PRIOR_DOMAINS
    guess = (_PRIOR_SPREAD * max(mean, 0.0)) ** 2
    spread = ((count - 1) * between + _PRIOR_DOMAINS * guess) / freedom
    reach = float(stats.t.ppf(_LEVEL, freedom)) * np.sqrt(spread * (1.0 + 1.0 / count) + noise / count)
    return float(np.sqrt(max(mean + reach, 0.0)))


#: Error of Pr[Y | X_U] that the leak causes, root mean square.
_NOTICEABLE_LEAK, _LARGE_LEAK = 0.05, 0.15
_FEWEST_ROWS = 30


def check_complementarity(inputs: CheckInputs) -> CheckResult:
    """The leak L/s of each training domain as an effect size, and tests of f_S ⟂ X_U | Y within it.

    p-values reject everything at tens of thousands of rows: the verdict needs both the test and the size.
    """
    training = inputs.labelled
    leaks = training_leaks(training)
    p_values = {
        name: _p_value(training, rows) for name, rows in training.by_domain if len(rows) >= _FEWEST_ROWS
    }
    if not leaks or not p_values:
        found = f"No training domain has {_FEWEST_ROWS} rows."
        return CheckResult("complementarity", "cannot tell", found, "Pass more labelled rows per domain.")
    adjusted = holm_by_name(p_values)
    smallest = min(adjusted.values())
    worst = max(leaks, key=lambda leak: leak.relative)
    lower = max(leak.certain for leak in leaks)
    details = {
        "p_by_domain": adjusted,
        "leak_by_domain": {leak.domain: leak.size for leak in leaks},
        "by_domain": {leak.domain: leak.relative for leak in leaks},
        "lower": lower,
    }
    found = (
        f"The leak of f_S shifts Pr[Y | X_U] by {worst.relative:.3f} in domain {worst.domain} (root mean "
        f"square; adjusted {p_in_words(smallest)}, the smallest over {len(adjusted)} domains)."
    )
    result = (worst.relative, None, smallest, details)
    if smallest >= inputs.level:
        if worst.relative > _LARGE_LEAK:
            remedy = "Pass more labelled rows per domain: this leak could be noise or not."
            return CheckResult("complementarity", "cannot tell", found, remedy, *result)
        return CheckResult("complementarity", "holds", found, "", *result)
    remedy = (
        "Keep the default answer, which is compared on your source domains, or drop the unstable columns "
        "that follow X_S within a class."
    )
    # The test looks at squares too: so must the size. An estimate that could be noise is a doubt at most.
    tested = training_leaks(training, squares=True)
    certain = max(lower, *(leak.certain for leak in tested))
    likely = max(worst.relative, *(leak.relative for leak in tested))
    effect = max(certain, min(likely, _NOTICEABLE_LEAK))
    verdict = judge(smallest, effect, level=inputs.level, matters=_NOTICEABLE_LEAK)
    remedy = "" if verdict == "holds" else remedy
    return CheckResult("complementarity", verdict, found, remedy, *result)


def training_leaks(training: TrainingRows, *, squares: bool = False) -> tuple[DomainLeak, ...]:
    """The leak of every training domain that has enough rows and more than one class.

    With `squares`, into the functions of X_U that the test of independence looks at.
    """
    X = basis(training.unstable) if squares else training.unstable
    return tuple(
        domain_leak(
            training.stable[rows],
            X[rows],
            training.y[rows],
            name,
            None if training.weight is None else training.weight[rows],
        )
        for name, rows in training.by_domain
        if len(rows) >= _FEWEST_ROWS and len(np.unique(training.y[rows])) > 1
    )


def _p_value(training: TrainingRows, rows: np.ndarray) -> float:
    stable = training.stable[rows][:, 1:]
    return conditional_independence(stable, training.unstable[rows], training.y[rows]).p_value
