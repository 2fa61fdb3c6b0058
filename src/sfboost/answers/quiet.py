"""Further answers to rows that nothing happened to: own domains, as they are, must clearly ask for them.

They are tried on own domains at fit time, and in a new domain fitted only if they were asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from sfboost.answers.candidates import Answer, BoostedAnswer, BoostSettings, PooledAnswer, boost
from sfboost.answers.mending import Habits
from sfboost.calibration import Temperature, fit_temperature
from sfboost.change import DomainData
from sfboost.change.domain_data import centred
from sfboost.heads import SoftLogisticRegression
from sfboost.heads.objectives import log_proba_from_logits
from sfboost.marginal.probabilities import FloatArray, IntArray

#: Their names.
AVERAGED, COMPONENTS = "averaged", "components"
# Penalty of each domain's head, on standardised features.
_L2 = 0.01
# Directions that are adapted along: the recipe for embeddings.
_N_DIRECTIONS = 8


@dataclass(frozen=True, eq=False)
class AveragedAnswer:
    """f_S and U weighed as in own domains on average: each domain counts once, however many its rows.

    Attributes
    ----------
    head : array of shape (columns, K + d + 1)
        Of the centred log f_S, of U in training units, and of one.
    centre, unit : arrays of shape (d,)
        Training units.
    """

    head: FloatArray
    centre: FloatArray
    unit: FloatArray

    def log_proba(self, rows: DomainData) -> FloatArray:
        """What the mean head says."""
        X = _design(rows, self.centre, self.unit)
        return log_proba_from_logits(X @ self.head[:, :-1].T + self.head[:, -1])


@dataclass(frozen=True, eq=False)
class ComponentsAnswer:
    """Pooled, adapted along the directions in which the new rows vary most.

    Attributes
    ----------
    habits : Habits
        Training units.
    rotation : array of shape (p + d + 1, directions)
    boosted : BoostedAnswer
        SFB along them, with pooled as f_S.
    temperature : Temperature
        Both parts read the same columns, and would be too sure.
    """

    habits: Habits
    rotation: FloatArray
    boosted: BoostedAnswer
    temperature: Temperature

    def log_proba(self, rows: DomainData) -> FloatArray:
        """Adapted and calibrated."""
        return self.temperature.apply(self.boosted.log_proba(_along(self.habits, self.rotation, rows)))


@dataclass(frozen=True, eq=False)
class QuietAnswers:
    """What own domains teach for these answers.

    Attributes
    ----------
    heads : array of shape (E, columns, K + d + 1)
        One for each own domain, fitted to its labels.
    centre, unit : arrays of shape (d,)
        Training units of U.
    temperature : Temperature
        Of the answer along components.
    """

    heads: FloatArray
    centre: FloatArray
    unit: FloatArray
    temperature: Temperature = field(default_factory=Temperature)

    @classmethod
    def learn(cls, views: Sequence[DomainData], labels: Sequence[IntArray], habits: Habits) -> Self:
        """Fit a head in each labelled domain; f_S is one that has not seen it."""
        centre, unit = habits.mean[habits.n_features :], habits.spread[habits.n_features :]
        n_classes = views[0].log_stable.shape[1]
        heads = []
        for view, y in zip(views, labels, strict=True):
            head = SoftLogisticRegression(l2=_L2)
            head.fit_soft(_design(view, centre, unit), np.eye(n_classes)[y], view.weight)
            heads.append(np.column_stack([head.coef_, head.intercept_]))
        return cls(np.array(heads), centre, unit)

    def averaged(self, without: int | None = None) -> AveragedAnswer:
        """The mean head, also that of all domains but one."""
        heads = self.heads if without is None else np.delete(self.heads, without, axis=0)
        return AveragedAnswer(heads.mean(axis=0), self.centre, self.unit)

    def played(
        self,
        rows: Sequence[DomainData],
        labels: Sequence[IntArray],
        numbers: IntArray,
        habits: Habits,
        settings: BoostSettings,
    ) -> tuple[Self, list[dict[str, FloatArray]]]:
        """Calibrated, and what these answers say of own domains, each of which has its number."""
        adapted = [along_components(part, habits, settings) for part in rows]
        raw = [answer.log_proba(part) for answer, part in zip(adapted, rows, strict=True)]
        temperature = fit_temperature(np.concatenate(raw), np.concatenate(labels))
        said = [
            {AVERAGED: self.averaged(number).log_proba(part), COMPONENTS: temperature.apply(log_proba)}
            for number, part, log_proba in zip(numbers, rows, raw, strict=True)
        ]
        return replace(self, temperature=temperature), said

    def answer(self, name: str, rows: DomainData, habits: Habits, settings: BoostSettings) -> Answer:
        """One of them, fitted to new rows."""
        if name == AVERAGED:
            return self.averaged()
        return replace(along_components(rows, habits, settings), temperature=self.temperature)


def along_components(rows: DomainData, habits: Habits, settings: BoostSettings) -> ComponentsAnswer:
    """Adapt pooled along the leading principal components of these rows; not calibrated."""
    Z = habits.standardised(rows)
    _, _, directions = np.linalg.svd(Z - rows.weight @ Z, full_matrices=False)
    rotation = directions[:_N_DIRECTIONS].T
    columns = tuple(range(rotation.shape[1]))
    boosted = boost(PooledAnswer(), _along(habits, rotation, rows), settings, columns)
    return ComponentsAnswer(habits, rotation, boosted, Temperature())


def _along(habits: Habits, rotation: FloatArray, rows: DomainData) -> DomainData:
    """The same rows, their unstable features being directions."""
    return replace(rows, unstable=habits.standardised(rows) @ rotation, given=None)


def _design(view: DomainData, centre: FloatArray, unit: FloatArray) -> FloatArray:
    return np.hstack([centred(view.log_stable), (view.unstable - centre) / unit])
