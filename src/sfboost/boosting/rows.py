"""Domains, folds and classes of the training rows: what `fit` checks and splits."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv
from sklearn.model_selection._split import GroupsConsumerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, column_or_1d

from sfboost.adaptation.checks import LARGEST, SMALLEST, in_range, is_missing
from sfboost.diagnostics.rows import rows_by_domain
from sfboost.marginal.probabilities import FloatArray, IntArray

Splits = list[tuple[IntArray, IntArray]]
# Rows that a logistic regression is fitted to, where it only judges others: of all, for each feature, and of
# the rarest class.
_ENOUGH, _ENOUGH_PER_FEATURE, _ENOUGH_OF_CLASS = 20_000, 500, 2000

ONE_DOMAIN = (
    "sample_domain was not given, so all rows count as one training domain, and what differs between domains "
    "cannot be seen: pass the domain of each row, to GridSearchCV as search.fit(X, y, groups=domain, "
    "sample_domain=domain). If there is one domain alone, pass its name for every row."
)


def check_labels(y: Any, X: Any) -> npt.NDArray[Any]:
    """One label per row, none missing."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: fit needs labels.")
    labels = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity: drop those rows, or give them a label.")
    if labels.dtype.kind == "O" and any(is_missing(label) for label in labels):
        raise ValueError("Input y contains missing labels: drop those rows, or give them a label.")
    check_classification_targets(labels)
    return labels


def encode_labels(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray]:
    """The classes, two at least, and the position of each label among them."""
    classes, position = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds one class only ({classes[0]}): at least two classes are needed.")
    return classes, position.reshape(-1)


def check_training_weight(sample_weight: Any, X: Any) -> FloatArray:
    """One weight per row, none negative, and none that overflows when it is squared."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not in_range(weight).all():
        raise ValueError(
            f"sample_weight goes up to {weight.max():g}: divide all weights by a number so that the "
            f"largest is between {SMALLEST:g} and {LARGEST:g}."
        )
    return weight


def check_frozen_classes(estimator: Any, classes: npt.NDArray[Any]) -> None:
    """A prefit classifier must know exactly the classes of the training labels."""
    if not np.array_equal(np.asarray(estimator.classes_), classes):
        raise ValueError(
            f"The prefit stable classifier knows the classes {list(estimator.classes_)}, but y holds "
            f"{list(classes)}: fit with labels of the same classes."
        )


def enough_rows(rows: IntArray, y: IntArray, n_features: int) -> IntArray:
    """Of very many rows those that a logistic regression needs: with more, its error hardly falls.

    Drawn at random, so that the rarest class keeps its share.
    """
    counts = np.bincount(y[rows])
    rarest = counts[counts > 0].min() / len(rows)
    most = max(_ENOUGH, _ENOUGH_PER_FEATURE * n_features, int(_ENOUGH_OF_CLASS / rarest))
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(len(rows)).permutation(rows)[:most])


def make_splits(
    y: npt.NDArray[Any], domain: npt.NDArray[Any], used: IntArray, cv: Any, seed: int | None
) -> Splits:
    """Train and held-out rows of each fold, as positions among the `used` rows."""
    if not isinstance(cv, Integral):
        groups = np.unique(domain.astype(str), return_inverse=True)[1]
        position = np.full(len(y), -1, dtype=np.intp)
        position[used] = np.arange(len(used))
        splitter = check_cv(cv, y, classifier=True)
        by_group = {"groups": groups} if isinstance(splitter, GroupsConsumerMixin) else {}
        splits = splitter.split(np.zeros((len(y), 1)), y, **by_group)
        kept = [tuple(position[rows][position[rows] >= 0] for rows in split) for split in splits]
        return [(inside, outside) for inside, outside in kept if len(outside)]
    # Every (domain, class) is spread evenly; small groups need no special case.
    rng = np.random.default_rng(seed)
    y, domain = y[used], domain[used]
    folds = np.empty(len(used), dtype=np.intp)
    offset = 0
    for _, rows in rows_by_domain(domain):
        for label in np.unique(y[rows]):
            group = rng.permutation(rows[y[rows] == label])
            folds[group] = (np.arange(len(group)) + offset) % int(cv)
            offset += len(group)
    return [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in np.unique(folds)]
