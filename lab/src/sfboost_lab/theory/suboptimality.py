"""How wrong the corrected and the naive classifier of X_U are when complementarity fails, exactly.

The proposition of the paper's last appendix, corrected in four places:

- the corrected classifier has ε̄₀ − 1 in its numerator (Eq. 4.4), not ε̄₀ − ε̄₁;
- ε̄_y is the mean of ε_y(X_U) over Pr[X_U | Y = y], not over Pr[X_U];
- h differs from h* where f* − ½ lies *between 0 and* t(x), with its sign; |f* − ½| ≤ |t| also counts the
  other side, so the printed formula can only be too large;
- where ε₀(x) + ε₁(x) < 1 the comparison turns round, and where it is 1 only the sign of t's numerator counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfboost.marginal import combine
from sfboost.marginal.probabilities import FloatArray
from sfboost_lab.theory.finite import FiniteJoint
from sfboost_lab.theory.recovery import recover

BoolArray = npt.NDArray[np.bool_]

# "Exactly one half" in tables made of decimals.
_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class SubOptimality:
    """S(h) = Pr[h(X_U) ≠ h*(X_U)], h* the Bayes classifier of X_U, for two classes.

    Attributes
    ----------
    corrected, naive : float
        S of the bias-corrected classifier and of the one that takes pseudo-labels for labels.
    corrected_printed, naive_printed : float
        The paper's |f* − ½| ≤ |t| with ε̄ read as class-conditional means: upper bounds.
    corrected_wrong, naive_wrong : array of shape (n_unstable,)
        The values of X_U where they differ from h*.
    corrected_threshold, naive_threshold : array of shape (n_unstable,)
        t(x): h says 1 where f* − ½ > t (if ε₀(x) + ε₁(x) > 1). Infinite where ε₀(x) + ε₁(x) = 1.
    """

    corrected: float
    naive: float
    corrected_printed: float
    naive_printed: float
    corrected_wrong: BoolArray
    naive_wrong: BoolArray
    corrected_threshold: FloatArray
    naive_threshold: FloatArray

    def __str__(self) -> str:
        better = "no worse" if self.corrected <= self.naive + _TIE else "worse"
        return (
            f"The corrected classifier of X_U differs from the best one with probability "
            f"{self.corrected:.4f}, the naive one with {self.naive:.4f}: the correction is {better}."
        )


def suboptimality(joint: FiniteJoint) -> SubOptimality:
    """S(h) of the corrected and the naive classifier by the corrected proposition.

    Examples
    --------
    With complementary features the corrected classifier is the best one. Here half of all rows have
    X_U = 1, where Pr[Y = 1] is .6, but the pseudo-label is 1 in less than half of them:

    >>> joint = FiniteJoint.from_conditionals([0.7, 0.3], [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.3, 0.7]])
    >>> result = suboptimality(joint)
    >>> result.corrected, round(result.naive, 2)
    (0.0, 0.35)
    """
    _require_two_classes(joint)
    mass, centred = joint.unstable_mass, joint.unstable_posterior[:, 1] - 0.5
    local, overall = joint.pointwise_confusion, joint.confusion
    slope = local[:, 0, 0] + local[:, 1, 1] - 1.0
    imbalance = local[:, 0, 0] - local[:, 1, 1]
    wrong, thresholds, totals, printed = [], [], [], []
    for offset in (overall[0, 0] - overall[1, 1], 0.0):
        numerator = (imbalance - offset) / 2.0
        missed = _differs(centred, slope, numerator)
        wrong.append(missed)
        thresholds.append(_threshold(numerator, slope))
        totals.append(float(mass[missed].sum()))
        inside = np.abs(centred * slope) <= np.abs(numerator) + _TIE
        printed.append(float(mass[inside & (np.abs(centred) > _TIE) | missed].sum()))
    return SubOptimality(totals[0], totals[1], printed[0], printed[1], wrong[0], wrong[1], *thresholds)


def _differs(centred: FloatArray, slope: FloatArray, numerator: FloatArray) -> BoolArray:
    """Where h says 1 and h* says 0, or the reverse.

    Pr[Ŷ = 1 | x] = (f* − ½)(ε₀ + ε₁ − 1) + ½ − (ε₀ − ε₁)/2, so h says 1 where (f* − ½) · slope > numerator.
    Dividing by a positive slope gives the signed form 0 < f* − ½ ≤ t or t < f* − ½ ≤ 0.
    """
    return (centred * slope > numerator + _TIE) != (centred > _TIE)


def _threshold(numerator: FloatArray, slope: FloatArray) -> FloatArray:
    flat = np.abs(slope) < _TIE
    return np.where(flat, np.copysign(np.inf, numerator), numerator / np.where(flat, 1.0, slope))


def enumerate_suboptimality(joint: FiniteJoint) -> tuple[float, float]:
    """The same two numbers without the proposition: build both classifiers and compare them with h*.

    Examples
    --------
    >>> from sfboost_lab.theory import product
    >>> enumerate_suboptimality(product())
    (0.0, 0.0)
    """
    _require_two_classes(joint)
    best = joint.unstable_posterior[:, 1] - 0.5 > _TIE
    corrected = recover(joint.stable_posterior, joint.pair_mass).unstable[:, 1] - 0.5 > _TIE
    naive = joint.pseudo_posterior[:, 1] - 0.5 > _TIE
    mass = joint.unstable_mass
    return float(mass[corrected != best].sum()), float(mass[naive != best].sum())


@dataclass(frozen=True)
class ExactAccuracies:
    """Accuracy in the population of every answer one could give in a domain.

    Attributes
    ----------
    stable : float
        f_S alone: what is predicted without adapting.
    corrected, naive : float
        f_S combined with the corrected f_U, and with Pr[Ŷ | X_U] in its place.
    best : float
        The Bayes classifier of (X_S, X_U).
    """

    stable: float
    corrected: float
    naive: float
    best: float


def exact_accuracies(joint: FiniteJoint) -> ExactAccuracies:
    """Accuracy of the stable, the adapted, the uncorrected and the best classifier, any K.

    Examples
    --------
    >>> from sfboost_lab.theory import anticausal
    >>> result = exact_accuracies(anticausal(0.1))
    >>> round(result.stable, 6), round(result.naive, 6), round(result.corrected, 6), round(result.best, 6)
    (0.75, 0.75, 0.9, 0.9)
    """
    recovered = recover(joint.stable_posterior, joint.pair_mass)
    rows, cells, _ = joint.table.shape
    stable = np.repeat(joint.stable_posterior, cells, axis=0)
    naive = combine(stable, np.tile(joint.pseudo_posterior, (rows, 1)), recovered.prior)
    return ExactAccuracies(
        stable=joint.accuracy(joint.stable_posterior[:, None, :]),
        corrected=joint.accuracy(recovered.joint),
        naive=joint.accuracy(naive.reshape(joint.table.shape)),
        best=joint.accuracy(joint.joint_posterior),
    )


def _require_two_classes(joint: FiniteJoint) -> None:
    if joint.n_classes != 2:
        raise ValueError(
            f"The proposition is about two classes, the table has {joint.n_classes}: use "
            "`exact_accuracies`, which works for any number."
        )
