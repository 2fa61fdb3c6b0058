"""The paper's theorems on exact finite distributions: tables, its examples, Theorem 4.4 as a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.marginal import PseudoLabelStatistics, as_probability_matrix, combine, correct_posthoc
from sfboost.marginal.probabilities import FloatArray

IntArray = npt.NDArray[np.intp]

# Tables come from products of decimals: sums are right to about 1e-16 per cell.
_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class FiniteJoint:
    """The joint law of X_S, X_U and Y in one domain, as a table.

    Parameters
    ----------
    table : array of shape (n_stable, n_unstable, K)
        Pr[X_S = i, X_U = j, Y = k]; non-negative, sums to one.

    Notes
    -----
    Conditional laws given an event of probability zero are set to the prior; weigh them with
    `stable_mass`, `unstable_mass` or `pair_mass` before use.

    Examples
    --------
    >>> joint = FiniteJoint.from_conditionals(
    ...     prior=[0.5, 0.5],
    ...     stable_given_label=[[0.75, 0.25], [0.25, 0.75]],
    ...     unstable_given_label=[[0.1, 0.9], [0.9, 0.1]],
    ... )
    >>> joint.stable_posterior
    array([[0.75, 0.25],
           [0.25, 0.75]])
    >>> joint.confusion
    array([[0.625, 0.375],
           [0.375, 0.625]])
    >>> round(joint.informativeness, 12), joint.complementary
    (0.25, True)
    """

    table: FloatArray

    def __post_init__(self) -> None:
        table = np.array(self.table, dtype=np.float64)
        if table.ndim != 3 or table.shape[2] < 2:
            raise ValueError(
                f"The table has shape {table.shape}; (n_stable, n_unstable, K) with K of 2 or more is "
                "needed: put Y on the last axis."
            )
        if not np.isfinite(table).all() or (table < 0.0).any():
            raise ValueError("The table has negative or non-finite entries: pass probabilities.")
        if abs(table.sum() - 1.0) > _SUM_TOLERANCE:
            raise ValueError(f"The table sums to {table.sum():.12g}, not 1: divide it by its sum first.")
        table.setflags(write=False)
        object.__setattr__(self, "table", table)

    @classmethod
    def from_conditionals(cls, prior: Any, stable_given_label: Any, unstable_given_label: Any) -> FiniteJoint:
        """Complementary features: Pr[Y] · Pr[X_S | Y] · Pr[X_U | Y].

        Parameters
        ----------
        prior : array-like of shape (K,)
        stable_given_label : array-like of shape (K, n_stable)
            Row k is the law of X_S given Y = k.
        unstable_given_label : array-like of shape (K, n_unstable)
        """
        p = np.asarray(prior, dtype=np.float64)
        a = np.asarray(stable_given_label, dtype=np.float64)
        b = np.asarray(unstable_given_label, dtype=np.float64)
        if a.ndim != 2 or b.ndim != 2 or not len(p) == len(a) == len(b):
            raise ValueError(
                f"Got {len(p)} classes in the prior and conditionals of shapes {a.shape} and {b.shape}: "
                "pass one row per class."
            )
        return cls(np.einsum("k,ki,kj->ijk", p, a, b))

    @classmethod
    def from_function(cls, label: Any, stable: Any, unstable: Any, *, n_classes: int = 2) -> FiniteJoint:
        """Y a function of independent X_S and X_U with the given laws.

        Parameters
        ----------
        label : callable
            (i, j) -> class, or -> array of shape (K,) with Pr[Y | X_S = i, X_U = j].
        stable, unstable : array-like
            Laws of X_S and of X_U.
        """
        table = np.zeros((len(stable), len(unstable), n_classes))
        for i, a in enumerate(stable):
            for j, b in enumerate(unstable):
                law = label(i, j)
                table[i, j] = a * b * (np.eye(n_classes)[law] if np.ndim(law) == 0 else np.asarray(law))
        return cls(table)

    # -- margins ------------------------------------------------------------------------------------

    @property
    def n_classes(self) -> int:
        """K, the number of classes."""
        return self.table.shape[2]

    @property
    def prior(self) -> FloatArray:
        """Pr[Y], of shape (K,)."""
        return self.table.sum(axis=(0, 1))

    @property
    def pair_mass(self) -> FloatArray:
        """Pr[X_S, X_U]: what unlabelled rows show."""
        return self.table.sum(axis=2)

    @property
    def stable_mass(self) -> FloatArray:
        """Pr[X_S]."""
        return self.table.sum(axis=(1, 2))

    @property
    def unstable_mass(self) -> FloatArray:
        """Pr[X_U]."""
        return self.table.sum(axis=(0, 2))

    # -- posteriors ---------------------------------------------------------------------------------

    @property
    def stable_posterior(self) -> FloatArray:
        """f_S: Pr[Y | X_S], of shape (n_stable, K)."""
        return self._normalise(self.table.sum(axis=1))

    @property
    def unstable_posterior(self) -> FloatArray:
        """f_U: Pr[Y | X_U], of shape (n_unstable, K)."""
        return self._normalise(self.table.sum(axis=0))

    @property
    def joint_posterior(self) -> FloatArray:
        """Pr[Y | X_S, X_U], of shape (n_stable, n_unstable, K)."""
        return self._normalise(self.table)

    @property
    def pseudo_posterior(self) -> FloatArray:
        """Pr[Ŷ | X_U] of the stochastic pseudo-label Ŷ ~ f_S(X_S), of shape (n_unstable, K)."""
        return self._normalise(self.pair_mass.T @ self.stable_posterior)

    def _normalise(self, mass: FloatArray) -> FloatArray:
        total = mass.sum(axis=-1, keepdims=True)
        return np.where(total > 0.0, mass / np.where(total > 0.0, total, 1.0), self.prior)

    # -- the quantities of Theorem 4.4 --------------------------------------------------------------

    @property
    def confusion(self) -> FloatArray:
        """ε[y, y'] = Pr[Ŷ = y | Y = y'], from the labels (not from f_S alone, as an estimate has to)."""
        return self._pseudo_given_label(self.table.sum(axis=1))

    @property
    def pointwise_confusion(self) -> FloatArray:
        """ε(x_U)[u, y, y'] = Pr[Ŷ = y | Y = y', X_U = u] (App. on violated complementarity).

        Where Pr[Y = y', X_U = u] = 0 it is set to ε[y, y'], which no formula depends on.
        """
        cells = [self._pseudo_given_label(self.table[:, u, :]) for u in range(self.table.shape[1])]
        present = self.table.sum(axis=0) > 0.0
        return np.where(present[:, None, :], np.stack(cells), self.confusion)

    def _pseudo_given_label(self, mass: FloatArray) -> FloatArray:
        total = mass.sum(axis=0)
        return (self.stable_posterior.T @ mass) / np.where(total > 0.0, total, 1.0)

    @property
    def leak(self) -> FloatArray:
        """L(u, y') = E[f_S | Y = y', X_U = u] − E[f_S | Y = y'], as [u, class of f_S, y'].

        Zero everywhere if X_S and X_U are complementary; it biases the corrected f_U by L/s.
        """
        return self.pointwise_confusion - self.confusion

    @property
    def statistics(self) -> PseudoLabelStatistics:
        """The label-free statistics of f_S in the population: the prior, ε and s that SFB computes."""
        return PseudoLabelStatistics.from_proba(self.stable_posterior, self.stable_mass)

    @property
    def informativeness(self) -> float:
        """The s = ε₀ + ε₁ − 1 of Lemma 4.5; for K > 2 the mean of ε's eigenvalues but the first."""
        return self.statistics.informativeness

    @property
    def complementary(self) -> bool:
        """Whether X_S ⟂ X_U | Y (to twelve digits)."""
        prior = np.where(self.prior > 0.0, self.prior, 1.0)
        product = np.einsum("ik,jk->ijk", self.table.sum(axis=1), self.table.sum(axis=0)) / prior
        return bool(np.abs(product - self.table).max() < 1e-12)

    # -- using it -----------------------------------------------------------------------------------

    def accuracy(self, proba: Any) -> float:
        """Exact accuracy of predicting the most probable class of `proba` (n_stable, n_unstable, K).

        Ties are shared evenly, as a coin would.
        """
        scores = np.broadcast_to(np.asarray(proba, dtype=np.float64), self.table.shape)
        best = scores >= scores.max(axis=2, keepdims=True) - 1e-12
        return float((self.table * best / best.sum(axis=2, keepdims=True)).sum())

    def sample(
        self, n: int, random_state: int | np.random.Generator | None = 0
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Draw n rows: positions of X_S and X_U in the table, and the label."""
        rng = np.random.default_rng(random_state)
        flat = self.table.reshape(-1)
        drawn = rng.choice(len(flat), size=n, p=flat / flat.sum())
        stable, unstable, label = np.unravel_index(drawn, self.table.shape)
        return stable, unstable, label


# Eigenvalues of ε below this are rounding: f_S does not separate the classes in that direction.
_ZERO = 1e-10


@dataclass(frozen=True, eq=False)
class Recovery:
    """What Theorem 4.4 says of a domain without labels.

    Attributes
    ----------
    unstable : array of shape (n_unstable, K)
        Pr[Y | X_U] by Eq. 4.4.
    joint : array of shape (n_stable, n_unstable, K)
        Pr[Y | X_S, X_U] by Eq. 4.5.
    prior : array of shape (K,)
    confusion : array of shape (K, K)
    """

    unstable: FloatArray
    joint: FloatArray
    prior: FloatArray
    confusion: FloatArray


def recover(stable_posterior: Any, pair_mass: Any) -> Recovery:
    """Recover the test domain's law of Y from f_S and the law of unlabelled rows.

    The result is the truth if X_S is stable, informative and complementary to X_U; nothing in the
    two arguments can tell whether it is complementary.

    Parameters
    ----------
    stable_posterior : array-like of shape (n_stable, K)
        f_S = Pr[Y | X_S].
    pair_mass : array-like of shape (n_stable, n_unstable)
        Pr[X_S, X_U] in the test domain.

    Raises
    ------
    ValueError
        If E[f_S f_Sᵀ] has no full rank: Pr[Y | X_U] is then not identified (Lemma 4.5 for two classes).

    Examples
    --------
    >>> from sfboost_lab.theory import anticausal
    >>> test = anticausal(agreement=0.1)
    >>> recover(test.stable_posterior, test.pair_mass).unstable.round(6)
    array([[0.1, 0.9],
           [0.9, 0.1]])
    """
    stable = as_probability_matrix(stable_posterior, name="stable_posterior")
    pairs = np.asarray(pair_mass, dtype=np.float64)
    if pairs.ndim != 2 or len(pairs) != len(stable):
        raise ValueError(
            f"pair_mass has shape {pairs.shape} but stable_posterior has {len(stable)} rows: pass one row of "
            "pair_mass per value of X_S."
        )
    statistics = PseudoLabelStatistics.from_proba(stable, pairs.sum(axis=1))
    if statistics.spectrum[-1] < _ZERO:
        raise ValueError(
            "f_S does not separate all classes (the smallest eigenvalue of ε is 0), so Pr[Y | X_U] is not "
            "identified: use stable features that are informative of every class."
        )
    mass = pairs.sum(axis=0)
    pseudo = (pairs.T @ stable) / np.where(mass > 0.0, mass, 1.0)[:, None]
    pseudo[mass <= 0.0] = statistics.prior
    unstable = correct_posthoc(pseudo, statistics.confusion)
    rows, cells = len(stable), len(mass)
    joint = combine(np.repeat(stable, cells, axis=0), np.tile(unstable, (rows, 1)), statistics.prior)
    return Recovery(unstable, joint.reshape(rows, cells, -1), statistics.prior, statistics.confusion)


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


_COIN = (0.5, 0.5)


def anticausal(agreement: float, stable_agreement: float = 0.75, prior: float = 0.5) -> FiniteJoint:
    """AC: Y fair, X_S and X_U agree with it independently (Eq. 6.1). Every assumption holds.

    Parameters
    ----------
    agreement : float
        Pr[X_U = Y]: .95 and .7 in training, .6 in validation, .1 at test.
    stable_agreement : float
        Pr[X_S = Y].
    prior : float
        Pr[Y = 1].
    """
    a, b = stable_agreement, agreement
    return FiniteJoint.from_conditionals(
        [1.0 - prior, prior], [[a, 1.0 - a], [1.0 - a, a]], [[b, 1.0 - b], [1.0 - b, b]]
    )


def cause_effect(agreement: float, stable_agreement: float = 0.75, *, learned: bool = False) -> FiniteJoint:
    """CE-DD: X_S causes Y, and both cause X_U (Eq. 6.2).

    The raw X_U is independent of Y and of X_S, so SFB has nothing to gain from it. What predicts Y is
    T, whether X_U and X_S differ; T is complementary to X_S. `learned=True` has T in place of X_U.

    Parameters
    ----------
    agreement : float
        Pr[Y = T]: .95 and .8 in training, .2 in validation, .1 at test.
    """
    table = np.zeros((2, 2, 2))
    for stable in (0, 1):
        for label in (0, 1):
            for seen in (0, 1):
                mass = 0.5 * (stable_agreement if label == stable else 1.0 - stable_agreement)
                mass *= agreement if seen == label else 1.0 - agreement
                table[stable, seen if learned else seen ^ stable, label] += mass
    return FiniteJoint(table)


def xor() -> FiniteJoint:
    """Y = X_S xor X_U of fair coins: each alone says nothing of Y, so s = 0."""
    return FiniteJoint.from_function(lambda i, j: i ^ j, _COIN, _COIN)


def product() -> FiniteJoint:
    """Y₁ = X_S · X_U (App. A): informative, not complementary; the twin of `product_of_complement`."""
    return FiniteJoint.from_function(lambda i, j: i * j, _COIN, _COIN)


def product_of_complement() -> FiniteJoint:
    """Y₂ = X_S · (1 − X_U): the same Pr[Y | X_S] and Pr[X_S, X_U] as Y₁, another Pr[Y | X_U]."""
    return FiniteJoint.from_function(lambda i, j: i * (1 - j), _COIN, _COIN)


def copy_of_unstable() -> FiniteJoint:
    """Y₃ = X_U: complementary, not informative; the twin of `independent_label`."""
    return FiniteJoint.from_function(lambda i, j: j, _COIN, _COIN)


def independent_label() -> FiniteJoint:
    """Y₄, a coin of its own: the same Pr[Y | X_S] and Pr[X_S, X_U] as Y₃, another Pr[Y | X_U]."""
    return FiniteJoint.from_function(lambda i, j: _COIN, _COIN, _COIN)


def copy_of_stable(agreement: float = 0.3, stable_agreement: float = 0.75) -> FiniteJoint:
    """X_U follows X_S and not Y: not complementary.

    By default the law of (X_S, X_U) is that of `anticausal(0.1)`, and only the labels tell them apart:
    adapting gains 15 points in one and loses 15 in the other.

    Parameters
    ----------
    agreement : float
        Pr[X_U = X_S].
    stable_agreement : float
        Pr[X_S = Y].
    """
    a, b = stable_agreement, agreement
    label = np.array([[a, 1.0 - a], [1.0 - a, a]])
    copied = np.array([[b, 1.0 - b], [1.0 - b, b]])
    return FiniteJoint(0.5 * label[:, None, :] * copied[:, :, None])


#: Name -> the test domain of each example.
EXAMPLES: dict[str, Callable[[], FiniteJoint]] = {
    "AC": lambda: anticausal(0.1),
    "CE-DD": lambda: cause_effect(0.1),
    "CE-DD learned": lambda: cause_effect(0.1, learned=True),
    "XOR": xor,
    "Y1": product,
    "Y2": product_of_complement,
    "Y3": copy_of_unstable,
    "Y4": independent_label,
    "copied X_S": copy_of_stable,
}
