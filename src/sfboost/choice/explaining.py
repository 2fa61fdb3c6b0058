"""Why a row gets its best answer: what the stable features say, and what each unstable one adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfboost.adaptation import Explanation
from sfboost.choice.best import BestAnswer
from sfboost.choice.record import SourceRecord
from sfboost.shift import DomainData


def explain_best(
    best: BestAnswer, row: DomainData, adaptation: Any, record: SourceRecord, codes: Sequence[str] = ()
) -> Explanation:
    """Terms of one prediction. A feature adds what the answer would lack if only the others told of it.

    `codes` are the names of the unstable columns. Those of a category ("ward=A") are one feature, which has
    no number of its own.
    """
    joint, stable, prior = best.log_proba(row)[0], row.log_stable[0], np.log(adaptation.prior)
    unstable = joint - stable + prior
    reference, feature_model = record.reference, record.feature_model
    features = names = values = None
    if feature_model is not None:
        groups = [np.flatnonzero(reference.groups == g) for g in range(int(reference.groups.max()) + 1)]
        # What training expects of a feature, given all others.
        without = [row.with_unstable(feature_model.expected(row, columns)) for columns in groups]
        features = np.array([joint - best.log_proba(other)[0] for other in without])
        names = tuple(reference.names[columns[0]] for columns in groups)
        coded = [bool(codes) and "=" in codes[int(columns[0])] for columns in groups]
        first = [row.unstable[0, columns[0]] for columns in groups]
        values = np.where(coded, np.nan, first)
    return Explanation(
        classes=adaptation.classes,
        stable=stable,
        unstable=unstable,
        prior=prior,
        joint=joint,
        features=features,
        baseline=None if features is None else unstable - features.sum(axis=0),
        feature_names=() if names is None else names,
        feature_values=values,
    )
