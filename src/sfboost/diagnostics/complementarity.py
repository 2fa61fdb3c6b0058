"""Are X_S and X_U independent given Y (Definition 4.3)? Asked of labelled training domains."""

from __future__ import annotations

import numpy as np

from sfboost.diagnostics.independence import basis, conditional_independence
from sfboost.diagnostics.inputs import CheckInputs, TrainingRows
from sfboost.diagnostics.leak import DomainLeak, domain_leak
from sfboost.diagnostics.moments import holm_by_name
from sfboost.diagnostics.result import CheckResult, judge, p_in_words

#: Error of Pr[Y | X_U] that the leak causes, root mean square.
_NOTICEABLE, _LARGE = 0.05, 0.15
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
        if worst.relative > _LARGE:
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
    effect = max(certain, min(likely, _NOTICEABLE))
    verdict = judge(smallest, effect, level=inputs.level, matters=_NOTICEABLE)
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
