"""The paper's distributions, exactly: AC, CE-DD, and the counter-examples of App. A and Section 4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfboost.theory.finite import FiniteJoint

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
}
