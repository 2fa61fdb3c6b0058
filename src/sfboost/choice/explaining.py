"""Why a row gets its answer: what each feature adds, against what training expects of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.adaptation import Explanation
from sfboost.choice.best import BestAnswer
from sfboost.choice.record import SourceRecord
from sfboost.marginal.probabilities import FloatArray
from sfboost.shift import DomainData

# Predictors that read the stable features themselves, not through f_S.
_OF_ALL_FEATURES = {"pooled", "shares", "realigned", "stable realigned"}


def explain_best(
    best: BestAnswer,
    row: DomainData,
    record: SourceRecord,
    classes: npt.NDArray[Any],
    stable_columns: Sequence[str],
    unstable_columns: Sequence[str],
) -> Explanation:
    """Terms of one prediction: what the answer would lack if a feature were what the others lead to expect.

    The columns are named as the pooled classifier reads them. Those of a category ("ward=A") are one feature,
    which has no number of its own. What no feature adds is the baseline; where f_S has a part in a mixture
    the stable features are in it, too.
    """
    joint = best.log_proba(row)[0]
    weights, prior = best.choice.weights, np.log(record.prior)
    if set(weights) == {"stable"}:
        return Explanation(classes, joint, row.log_stable[0], prior, prior)
    if record.feature_model is None:
        return Explanation(classes, joint)

    def terms(names: Sequence[str], first: int) -> tuple[FloatArray, tuple[str, ...], FloatArray]:
        """What features add, their names and values; their columns are those from `first` on."""
        added, values = [], []
        features = [name.partition("=")[0] for name in names]
        for feature in dict.fromkeys(features):
            columns = first + np.flatnonzero(np.array(features) == feature)
            S, U = record.feature_model.expected(row, columns)  # type: ignore[union-attr]
            added.append(joint - best.log_proba(replace(row, features=S).with_unstable(U))[0])
            values.append(np.nan if "=" in names[columns[0] - first] else both[columns[0]])
        return np.array(added).reshape(-1, len(classes)), tuple(dict.fromkeys(features)), np.array(values)

    both = np.hstack([row.features[0], row.unstable[0]])
    stable = terms(stable_columns if set(weights) <= _OF_ALL_FEATURES else (), 0)
    unstable = terms(unstable_columns, row.features.shape[1])
    return Explanation(
        classes,
        joint,
        features=unstable[0],
        baseline=joint - unstable[0].sum(axis=0) - stable[0].sum(axis=0),
        feature_names=unstable[1],
        feature_values=unstable[2],
        stable_features=stable[0],
        stable_names=stable[1],
        stable_values=stable[2],
    )
