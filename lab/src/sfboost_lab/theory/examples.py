"""The paper's distributions, exactly: AC, CE-DD, and the counter-examples of App. A and Section 4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfboost_lab.theory.finite import FiniteJoint

_COIN = (0.5, 0.5)
# A random joint with a smaller s is drawn again: nothing could be learned from it.
_INFORMATIVE = 0.05


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


def nearly_complementary(share: float, rng: np.random.Generator) -> FiniteJoint:
    """A random complementary joint of two classes, mixed with a `share` of any other; f_S is informative."""
    while True:
        n_stable, n_unstable = rng.integers(2, 5), rng.integers(2, 9)
        base = FiniteJoint.from_conditionals(
            rng.dirichlet([2, 2]), rng.dirichlet(np.ones(n_stable), 2), rng.dirichlet(np.ones(n_unstable), 2)
        ).table
        noise = rng.dirichlet(np.ones(base.size)).reshape(base.shape)
        joint = FiniteJoint((1 - share) * base + share * noise)
        if joint.informativeness > _INFORMATIVE:
            return joint


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
