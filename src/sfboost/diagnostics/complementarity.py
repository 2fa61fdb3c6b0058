"""Whether X_S and X_U are independent given Y (Definition 4.3): with labels, and without.

With labels: the leak of f_S, how much of X_U it shows within a class. The corrected Pr[Y | u] is off by
ε⁻¹ B(u), B(u) = Σ_y q_y(u) L(u, y), L(u, y) = E[f_S | y, u] − E[f_S | y] (two classes: B/s). The size of L is
that of the regressions of f_S on u within each class; it does not depend on how u relates to the class in
that domain, so it can be carried to another one.

Without: if f_S ⟂ X_U | Y then E[g(X_U) | f_S] = Σ_y Pr[y | f_S] E[g(X_U) | y], affine in Pr[Y | f_S] whatever
f_S leaves out of X_S. Any other shape says that complementarity fails, or that Pr[Y | f_S] is not what
training says. With as many distinct values of f_S as classes every function is affine: the model is
saturated, and only a corrected Pr[Y | X_U] that is no probability shows anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.stats import t as t_distribution

from sfboost.diagnostics.moments import (
    MomentTest,
    basis,
    coarse,
    conditional_independence,
    holm_by_name,
    log_contrasts,
    principal_components,
    row_products,
    zero_mean_test,
)
from sfboost.diagnostics.recalibration import Recalibration
from sfboost.diagnostics.result import CheckResult, check, judge, p_in_words
from sfboost.diagnostics.rows import CheckInputs, NewRows, TrainingRows
from sfboost.marginal import PseudoLabelStatistics
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


def training_leak(leaks: tuple[DomainLeak, ...]) -> float:
    """δ of the guard: how much one more domain of the same kind may leak; more in one of ten.

    The upper end of a random-effects prediction interval of the mean square L̄ over E domains,
    L̄ + t √(τ²(1 + 1/E) + SE²): domains differ (τ), and their mean is known up to sampling error (SE). τ² and
    the degrees of freedom of t count a prior guess as three domains, so that the rule holds for one and two
    domains too: with one the guess is all that says how domains differ. Few rows make δ larger.

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
        return 0.0
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


@check("complementarity", "Within a class, are stable and unstable features independent?", "training X_U")
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
    lower = max(leak.lower / max(leak.informativeness, 1e-12) for leak in leaks)
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
        "Keep the default answer, which asks your own domains, or drop the unstable columns that follow X_S "
        "within a class."
    )
    # The test looks at squares too: so must the size. An estimate that could be noise is a doubt at most.
    tested = training_leaks(training, squares=True)
    certain = max(lower, *(leak.lower / max(leak.informativeness, 1e-12) for leak in tested))
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


#: Share of the dependence between X_U and f_S that is not explained by the class.
_LARGE_SHARE = 0.1
_REMEDY = (
    "Complementarity or calibration fails here: recalibrate f_S, drop the unstable columns that follow it, "
    "or keep the stable predictor."
)


@check(
    "complementarity, new domain", "Within a class, are stable and unstable features independent?", "new X_U"
)
def check_linearity(inputs: CheckInputs) -> CheckResult:
    """Score test of functions of f_S ⊗ {u, u²} against E[g(X_U) | f_S] affine in Pr[Y | f_S].

    The covariance is robust, and the error of Pr[Y | f_S] is in it.
    """
    new = _judged(inputs)
    outcome = linearity_test(new)
    if outcome is None:
        found = f"f_S takes {n_levels(new.stable)} values for {new.stable.shape[1]} classes: saturated."
        remedy = "Use richer stable features, or labelled rows; the guard's leak=δ bounds the harm."
        return CheckResult("complementarity, new domain", "cannot tell", found, remedy)
    test, share = outcome
    details = {"degrees": test.degrees, "unexplained_share": share}
    found = (
        f"{100 * share:.1f} % of the dependence of X_U on f_S is not explained by the class "
        f"({p_in_words(test.p_value)}, {test.degrees} directions)."
    )
    verdict = judge(test.p_value, share, level=inputs.level, matters=_LARGE_SHARE)
    remedy = "" if verdict == "holds" else _REMEDY
    return CheckResult(
        "complementarity, new domain", verdict, found, remedy, share, None, test.p_value, details
    )


def _judged(inputs: CheckInputs) -> NewRows:
    """The new rows with what the training labels, if there are any, say of f_S."""
    rows = inputs.training
    if inputs.fresh.recalibration is not None or rows is None:
        return inputs.fresh
    return replace(
        inputs.fresh, recalibration=Recalibration.fit(rows.stable, rows.y, rows.domain, rows.weight)
    )


def n_levels(stable: FloatArray) -> int:
    """Values of f_S that are clearly distinct."""
    return len(np.unique(_coarse(stable), axis=0))


def _coarse(stable: FloatArray) -> FloatArray:
    """f_S without differences too small to matter; any function of it keeps the null.

    If every value of X_U gets a value of f_S of its own, however near to the others, f_S shows X_U fully to a
    test and hardly at all to a combination.
    """
    if stable.shape[1] == 2:
        second = coarse(stable[:, 1])
        return np.column_stack([1.0 - second, second])
    return np.column_stack([coarse(column) for column in stable.T])


def linearity_test(new: NewRows) -> tuple[MomentTest, float] | None:
    """The test, and the share of Var E[g | f_S] beyond the affine part; None if f_S is saturated.

    Pr[Y | f_S] as the labels tell it has errors; f_S, which has none, is its instrument. So those errors are
    in the moments once, not squared.
    """
    score = new.stable if new.recalibration is None else new.recalibration.apply(new.stable)
    seen = _coarse(new.stable)
    score, instrument = (values[:, 1:] - values[:, 1:].mean(axis=0) for values in (score, seen))
    curved = residual(_functions(seen), np.column_stack([np.ones(len(score)), instrument]))
    curved = curved[:, curved.std(axis=0) > 1e-7]
    if n_levels(new.stable) <= new.stable.shape[1] or not curved.shape[1]:
        return None
    inverse = np.linalg.pinv(score.T @ instrument)
    beyond = curved - instrument @ (inverse @ (score.T @ curved))
    beyond = beyond / beyond.std(axis=0)
    response = basis(new.unstable)
    response = response - response.mean(axis=0)
    slope = inverse.T @ (instrument.T @ response)
    scale = (response - score @ slope).std(axis=0)
    response, slope = (values[:, scale > 1e-9] / scale[scale > 1e-9] for values in (response, slope))
    error = response - score @ slope
    rows = row_products(error, beyond)
    doubt = _doubt(new, slope, beyond)
    test = zero_mean_test(rows, lost=new.stable.shape[1], doubt=doubt)
    return test, _unexplained(score @ slope, error, beyond, doubt)


def _functions(stable: FloatArray) -> FloatArray:
    """Functions of f_S that are not affine in it.

    Functions of X_S that f_S does not show are none of the test's business: the method uses f_S alone, and
    X_U may follow those within a class without harm.
    """
    logs = log_contrasts(stable)
    return np.column_stack([logs, (stable**2)[:, 1:]]) if stable.shape[1] == 2 else logs


def _doubt(new: NewRows, slope: FloatArray, beyond: FloatArray) -> FloatArray:
    """Covariance of the moments that the errors of the recalibration alone would cause."""
    n_moments = slope.shape[1] * beyond.shape[1]
    if new.recalibration is None:
        return np.zeros((n_moments, n_moments))
    cell, errors = new.recalibration.cell_of(new.stable), new.recalibration.covariance[:, 1:, 1:]
    means = np.column_stack([np.bincount(cell, column, len(errors)) for column in beyond.T]) / len(cell)
    return np.einsum("jp,jq,kg,jkl,lh->gphq", means, means, slope, errors, slope, optimize=True).reshape(
        n_moments, n_moments
    )


def residual(values: FloatArray, design: FloatArray) -> FloatArray:
    """What least squares on `design` leaves."""
    return values - design @ np.linalg.lstsq(design, values, rcond=None)[0]


def _unexplained(affine: FloatArray, error: FloatArray, beyond: FloatArray, doubt: FloatArray) -> float:
    """Variance that the extra functions explain, noise subtracted, over that plus the affine part's."""
    n_rows, n_extra = beyond.shape
    extra = error - residual(error, beyond)
    blocks = doubt.reshape(error.shape[1], n_extra, error.shape[1], n_extra)
    inverse = np.linalg.pinv(beyond.T @ beyond / n_rows, hermitian=True)
    noise = n_extra / n_rows + np.einsum("gpgq,pq->g", blocks, inverse)
    more = float(np.maximum(extra.var(axis=0) - noise, 0.0).sum())
    explained = float(np.maximum(affine.var(axis=0) - 1.0 / n_rows, 0.0).sum())
    return more / max(more + explained, 1e-12) if more > 0.0 else 0.0


#: How far below zero a corrected probability matters: an f_S that is slightly off reaches a little below.
NOTICEABLE = 0.05
_MOST_BINS = 10
_FEWEST_IN_BIN = 100
_FOLDS = 2


@check("feasibility, new domain", "Could any class explain what the rows show?", "new X_U")
def check_feasibility(inputs: CheckInputs) -> CheckResult:
    """ε⁻¹ E[f_S | u in a bin] must not be negative in any bin of X_U; bins are chosen on other rows.

    An infeasible answer says that X_U shows more of f_S than the class can: complementarity or calibration
    fails. A feasible one says little; it is all that a two-valued X_S allows.
    """
    new = inputs.fresh
    confusion = PseudoLabelStatistics.from_proba(new.stable).confusion
    if np.linalg.cond(confusion) > 1e6:
        found = "f_S does not separate all classes: ε cannot be inverted."
        return CheckResult("feasibility, new domain", "cannot tell", found)
    lowest, error, p_value, n_bins = feasibility(new, confusion, inputs.random_state)
    found = (
        f"The smallest corrected Pr[Y | X_U] over {n_bins} bins is {lowest:.3f} ± {error:.3f} "
        f"(adjusted {p_in_words(p_value)})."
    )
    verdict = judge(p_value, -lowest, level=inputs.level, matters=NOTICEABLE)
    if verdict != "holds":
        remedy = "Either X_U repeats X_S within a class or f_S is underconfident: recalibrate or keep f_S."
        return CheckResult("feasibility, new domain", verdict, found, remedy, lowest, error, p_value)
    found = f"{found} Feasible, which does not prove complementarity."
    return CheckResult("feasibility, new domain", "holds", found, "", lowest, error, p_value)


def feasibility(new: NewRows, confusion: FloatArray, seed: int) -> tuple[float, float, float, int]:
    """Smallest corrected probability, its error, its adjusted p-value, and the number of bins."""
    inverse = np.linalg.inv(confusion)
    corrected = new.stable @ inverse.T
    bins = _bins(new, seed)
    lowest, at, smallest, tests = np.inf, 0.0, 1.0, 0
    for label in np.unique(bins):
        rows = corrected[bins == label]
        if len(rows) < _FEWEST_IN_BIN // 2:
            continue
        mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
        tests += rows.shape[1]
        p_values = t_distribution.cdf(mean / np.maximum(error, 1e-12), len(rows) - 1)
        smallest = min(smallest, float(p_values.min()))
        if mean.min() < lowest:
            lowest, at = float(mean.min()), float(error[mean.argmin()])
    if not tests:
        return 0.0, 0.0, 1.0, 0
    return lowest, at, min(1.0, tests * smallest), len(np.unique(bins))


def _bins(new: NewRows, seed: int) -> FloatArray:
    """Bins of X_U: its own values if they are few, else deciles of the regression of f_S on it.

    The regression is cross-fitted: a bin must not be chosen by the f_S that it is then judged by.
    """
    X = new.unstable
    values, place = np.unique(np.column_stack([coarse(u) for u in X.T]), axis=0, return_inverse=True)
    n_bins = max(2, min(_MOST_BINS, len(X) // _FEWEST_IN_BIN))
    if len(values) <= _MOST_BINS:
        return place.reshape(-1).astype(np.float64)
    X = principal_components(X, min(X.shape[1], 20))
    folds = np.random.default_rng(seed).permutation(len(X)) % _FOLDS
    bins = np.empty(len(X))
    main = new.stable @ np.linalg.eigh(np.cov(new.stable.T))[1][:, -1]
    for fold in np.unique(folds):
        inside, outside = folds != fold, folds == fold
        design = np.column_stack([np.ones(inside.sum()), X[inside]])
        slope = np.linalg.lstsq(design, main[inside], rcond=None)[0]
        score = slope[0] + X[outside] @ slope[1:]
        bins[outside] = np.searchsorted(np.quantile(score, np.arange(1, n_bins) / n_bins), score)
    return bins


# Much stricter than the checks: a false alarm costs the whole gain of adapting.
_LINEARITY_LEVEL, _UNEXPLAINED = 0.001, 0.1
_FEASIBILITY_LEVEL = 0.01


def new_domain_alarm(new: NewRows, random_state: int = 0) -> str | None:
    """A sentence if the unlabelled rows contradict complementarity clearly, else None.

    Where f_S has many levels: the linearity test at level .001, and at least a tenth of the dependence of
    X_U on f_S left unexplained by the class. Where f_S is saturated only infeasibility can be seen (level
    .01, and a probability below −.05), and a leak that stays feasible cannot. X_S itself is not looked at:
    what f_S leaves out of it may follow X_U without harm.

    Examples
    --------
    >>> from sfboost.diagnostics import make_new_rows
    >>> from sfboost_lab.testing import Dials, simulate
    >>> good, bad = (simulate(Dials(new_violation=size), seed=0).new for size in (0.0, 1.0))
    >>> new_domain_alarm(make_new_rows(good.posterior, good.X_unstable)) is None
    True
    >>> new_domain_alarm(make_new_rows(bad.posterior, bad.X_unstable))[:48]
    'X_U follows f_S within a class in the new domain'
    """
    if new.X_unstable is None or len(new.stable) < 100:
        return None
    outcome = linearity_test(new)
    if outcome is not None:
        test, share = outcome
        if test.p_value < _LINEARITY_LEVEL and share > _UNEXPLAINED:
            return (
                f"X_U follows f_S within a class in the new domain ({100 * share:.0f} % of their dependence "
                f"is not explained by the class, {p_in_words(test.p_value)}), or f_S errs otherwise there "
                "than in training"
            )
        return None
    confusion = PseudoLabelStatistics.from_proba(new.stable).confusion
    if np.linalg.cond(confusion) > 1e6:
        return None
    lowest, _, p_value, _ = feasibility(new, confusion, random_state)
    if p_value < _FEASIBILITY_LEVEL and lowest < -NOTICEABLE:
        return f"the corrected Pr[Y | X_U] falls to {lowest:.2f} in the new domain: no class explains X_U"
    return None
