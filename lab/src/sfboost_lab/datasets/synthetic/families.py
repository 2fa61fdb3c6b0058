"""The finite families by name, with every parameter open.

Each takes ``train``, ``validate`` and ``test``: one entry per domain, the main dial (for most the agreement)
or a mapping of dials.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfboost.datasets.colored_digits import check_probability
from sfboost_lab.datasets.synthetic.finite import FiniteFamily, build
from sfboost_lab.datasets.synthetic.settings import Dials, Setting, settings

JIANG = "Y. Jiang and V. Veitch (2022), Invariant and Transportable Representations, NeurIPS"


def _if_equal(equal: bool, probability: float, n_others: int = 1) -> float:
    return probability if equal else (1 - probability) / n_others


def anti_causal(
    train: Sequence[Dials] = (0.95, 0.7),
    validate: Sequence[Dials] = (0.6,),
    test: Sequence[Dials] = (0.1,),
    *,
    stable_accuracy: float = 0.75,
    prior: float = 0.5,
) -> FiniteFamily:
    """AC: Y causes X_S and, apart from it, X_U; both are ±1.

    Dials of a domain: ``agreement`` Pr[X_U = Y], ``prior`` Pr[Y = 1].

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic import anti_causal
    >>> anti_causal(test=[0.0]).ceiling("test-0.0")
    1.0
    """
    check_probability("stable_accuracy", stable_accuracy)

    def probability(setting: Setting, cell: tuple[float, ...], y: int) -> float:
        sign = 2 * y - 1
        return (
            _if_equal(y == 1, setting.dials["prior"])
            * _if_equal(cell[0] == sign, stable_accuracy)
            * _if_equal(cell[1] == sign, setting.dials["agreement"])
        )

    made = settings(train, validate, test, {"agreement": 0.5, "prior": prior})
    groups = {"stable": [0], "complementary": [1]}
    return build("ac", made, [(-1, 1), (-1, 1)], 2, probability, groups, citation=JIANG)


def cause_effect_direct(
    train: Sequence[Dials] = (0.95, 0.8),
    validate: Sequence[Dials] = (0.2,),
    test: Sequence[Dials] = (0.1,),
    *,
    stable_accuracy: float = 0.75,
    stable_rate: float = 0.5,
    with_combination: bool = False,
) -> FiniteFamily:
    """CE-DD: X_S causes Y, and X_U = XNOR(XNOR(Y, B), X_S) depends on both; all are 0 or 1.

    This is what the code behind the published numbers draws; the papers write XOR, which is the same with X_S
    renamed. X_U alone says nothing about Y: what does is T = XNOR(X_S, X_U), which agrees with Y with
    probability ``agreement`` and is independent of X_S given Y; ``with_combination`` adds it as a column.
    Dials of a domain: ``agreement``, ``stable_rate`` Pr[X_S = 1].

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic import cause_effect_direct
    >>> ce_dd = cause_effect_direct()
    >>> [ce_dd.ceiling("test-0.1", f) for f in ("stable", "unstable", "all")]
    [0.75, 0.5, 0.9]
    """
    check_probability("stable_accuracy", stable_accuracy)

    def probability(setting: Setting, cell: tuple[float, ...], y: int) -> float:
        stable, unstable = cell
        combination = float(stable == unstable)
        return (
            _if_equal(stable == 1, setting.dials["stable_rate"])
            * _if_equal(y == stable, stable_accuracy)
            * _if_equal(combination == y, setting.dials["agreement"])
        )

    def encode(cell: tuple[float, ...]) -> Sequence[float]:
        return (*cell, float(cell[0] == cell[1])) if with_combination else cell

    made = settings(train, validate, test, {"agreement": 0.5, "stable_rate": stable_rate})
    groups = {"stable": [0], "non_complementary": [1]} | ({"complementary": [2]} if with_combination else {})
    return build("ce_dd", made, [(0, 1), (0, 1)], 2, probability, groups, encode, JIANG)


def multiclass_anti_causal(
    train: Sequence[Dials] = (0.95, 0.7),
    validate: Sequence[Dials] = (0.4,),
    test: Sequence[Dials] = ({"agreement": 0.05, "shift": 1},),
    *,
    n_classes: int = 4,
    stable_accuracy: float = 0.75,
) -> FiniteFamily:
    """AC with many classes: X_S and X_U each name a class, as one-hot columns.

    X_U = Y with probability ``agreement``. The rest goes evenly to the other classes, or, where ``shift`` is
    not 0, all of it to the class Y + shift: X_U then names a wrong class as reliably as the right one.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic import multiclass_anti_causal
    >>> many = multiclass_anti_causal()
    >>> many.ceiling("test-0.05", "unstable"), many.sample(3).domain("test-0.05").X.shape
    (0.95, (3, 8))
    """
    check_probability("stable_accuracy", stable_accuracy)
    if n_classes < 2:
        raise ValueError(f"Got n_classes={n_classes}; give 2 or more.")

    def probability(setting: Setting, cell: tuple[float, ...], y: int) -> float:
        agreement, shift = setting.dials["agreement"], int(setting.dials["shift"]) % n_classes
        other = _if_equal(cell[1] == y, agreement, n_classes - 1)
        if shift and cell[1] != y:
            other = (1 - agreement) * (cell[1] == (y + shift) % n_classes)
        return _if_equal(cell[0] == y, stable_accuracy, n_classes - 1) * other / n_classes

    def encode(cell: tuple[float, ...]) -> Sequence[float]:
        one_hot = np.eye(n_classes)
        return [*one_hot[int(cell[0])], *one_hot[int(cell[1])]]

    made = settings(train, validate, test, {"agreement": 1 / n_classes, "shift": 0})
    groups = {"stable": list(range(n_classes)), "complementary": list(range(n_classes, 2 * n_classes))}
    labels = range(n_classes)
    return build("multiclass_ac", made, [labels, labels], n_classes, probability, groups, encode)


def three_parts(
    train: Sequence[Dials] = ({"agreement": 0.95, "shortcut": 0.9}, {"agreement": 0.7, "shortcut": 0.8}),
    validate: Sequence[Dials] = ({"agreement": 0.4, "shortcut": 0.5},),
    test: Sequence[Dials] = ({"agreement": 0.1, "shortcut": 0.2},),
    *,
    stable_accuracy: float = 0.75,
    dependence: float = 0.5,
) -> FiniteFamily:
    """Stable, complementary and non-complementary columns; all are 0 or 1.

    X_S and X_C are effects of Y as in AC (X_C agrees with probability ``agreement``). X_N copies X_S with
    probability ``dependence``, else it equals Y with probability ``shortcut``: it depends on X_S given Y.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic import three_parts
    >>> parts = three_parts()
    >>> parts.groups
    {'stable': [0], 'complementary': [1], 'non_complementary': [2]}
    >>> parts.ceiling("test-0.1", [0, 1])
    0.9
    """
    check_probability("stable_accuracy", stable_accuracy)
    check_probability("dependence", dependence)

    def probability(setting: Setting, cell: tuple[float, ...], y: int) -> float:
        stable, complementary, other = cell
        return (
            0.5
            * _if_equal(stable == y, stable_accuracy)
            * _if_equal(complementary == y, setting.dials["agreement"])
            * (
                dependence * (other == stable)
                + (1 - dependence) * _if_equal(other == y, setting.dials["shortcut"])
            )
        )

    made = settings(train, validate, test, {"agreement": 0.5, "shortcut": 0.5})
    groups = {"stable": [0], "complementary": [1], "non_complementary": [2]}
    return build("three_parts", made, [(0, 1)] * 3, 2, probability, groups)
