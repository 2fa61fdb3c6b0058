"""When the new domain itself says that complementarity fails, loudly enough to keep the stable predictor."""

from __future__ import annotations

import numpy as np

from sfboost.diagnostics.feasibility import NOTICEABLE, feasibility
from sfboost.diagnostics.inputs import NewRows
from sfboost.diagnostics.linearity import linearity_test
from sfboost.diagnostics.result import p_in_words
from sfboost.marginal import PseudoLabelStatistics

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
