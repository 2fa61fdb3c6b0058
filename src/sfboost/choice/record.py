"""`SourceRecord`: what source domains teach the decision, each left out in turn. Numbers, no rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from sfboost.adaptation.scores import weighted_scores
from sfboost.choice.realigning import FeatureModel
from sfboost.choice.shares import ClassShares
from sfboost.marginal.probabilities import FloatArray, IntArray
from sfboost.shift import DomainData, Reference
from sfboost.shift.rows import average_unstable
from sfboost.shift.testing import misfit_of

# A Brier score within so much of a guess's is no better.
_NO_BETTER = 0.95


@dataclass(frozen=True, eq=False)
class SourceRecord:
    """Made by `fit`, part of `training_`.

    Attributes
    ----------
    reference : Reference
        What the unstable features say in each source domain, seen by f_S.
    stable_reference : Reference or None
        What the stable features say there, seen by a classifier of the unstable ones. None where there are
        not two of them: then only the user's word tells a shift of X_S from one of X_U.
    misfit, stable_misfit : float
        How much smaller than chance the p-values of source domains are, each tested against the others.
    feature_model : FeatureModel or None
        How the unstable features go with all others; None if the pooled classifier cannot be asked what it
        would say of other values.
    stable_model : FeatureModel or None
        The same of the stable ones.
    shares : ClassShares
        What they say of class shares.
    errors : dict of str to tuple of dict
        Of "pooled" and "stable": in each left-out source domain, by score, the true one less the one that the
        probabilities themselves lead to expect.
    scores : dict of str to tuple of dict
        Of both: the true ones, in each left-out source domain.
    pooled_name : str
        What the pooled classifier is, in words.
    pooled, unstable : fitted classifier or None
        Of the centred log f_S and X_U, and of X_U alone, where training came as arrays.
    """

    reference: Reference
    stable_reference: Reference | None
    misfit: float
    stable_misfit: float
    feature_model: FeatureModel | None
    stable_model: FeatureModel | None
    shares: ClassShares
    errors: dict[str, tuple[dict[str, float], ...]] = field(default_factory=dict)
    scores: dict[str, tuple[dict[str, float], ...]] = field(default_factory=dict)
    pooled_name: str = ""
    pooled: Any = None
    unstable: Any = None

    def __post_init__(self) -> None:
        for known in (self.reference, self.stable_reference):
            if known is not None:
                _ = known.expected  # found once, here: adapting leaves a fitted model as it was

    @property
    def prior(self) -> FloatArray:
        """Class shares of the source rows."""
        return self.reference.prior

    @property
    def doubt(self) -> str | None:
        """Why f_S is not to be trusted, if source domains that it was not trained on say so."""
        if not self.reference.misled:
            return None
        return (
            "in your source domains, each left out in turn, it is worse than a guess at random (Brier score "
            f"{self.reference.stable_brier:.2f}, the guess has {self.reference.guess_brier:.2f})"
        )

    @property
    def helpless(self) -> str | None:
        """What source domains say where neither pooled nor stable is better than a guess there; else None."""
        guess = self.reference.guess_brier
        stable, pooled = (
            float(np.mean([one["brier"] for one in self.scores[name]])) for name in ("stable", "pooled")
        )
        if min(stable, pooled) < _NO_BETTER * guess:
            return None
        return (
            "In your source domains, each left out in turn, neither one classifier of all features nor the "
            "stable ones alone were better than a guess at random (Brier score "
            f"{pooled:.2f} and {stable:.2f}, the guess has {guess:.2f})"
        )

    @classmethod
    def learn(
        cls,
        rows: Sequence[DomainData],
        labels: Sequence[IntArray],
        domains: Sequence[Any],
        *,
        names: Sequence[str] | None = None,
        groups: Sequence[int] | None = None,
        stable_names: Sequence[str] | None = None,
        stable_groups: Sequence[int] | None = None,
        pooled_name: str = "",
    ) -> Self:
        """Learn from labelled domains, each seen by classifiers that were trained without it."""
        reference, model = _side(rows, labels, domains, names, groups)
        stable_reference = stable_model = None
        numbers = rows[0].features.shape[1] if stable_groups is None else len(set(stable_groups))
        if numbers > 1 and all(part.log_unstable is not None for part in rows):
            swapped = [part.swapped() for part in rows]
            stable_reference, stable_model = _side(swapped, labels, domains, stable_names, stable_groups)
        said = {"pooled": [part.log_pooled for part in rows], "stable": [part.log_stable for part in rows]}
        scored = {
            name: [_scores(log_proba, part, y) for log_proba, part, y in zip(each, rows, labels, strict=True)]
            for name, each in said.items()
        }
        return cls(
            reference,
            stable_reference,
            misfit_of(reference),
            1.0 if stable_reference is None else misfit_of(stable_reference),
            model,
            stable_model,
            ClassShares.learn(rows, labels, reference.prior),
            {name: tuple(error for _, error in each) for name, each in scored.items()},
            {name: tuple(true for true, _ in each) for name, each in scored.items()},
            pooled_name,
        )


def _side(
    rows: Sequence[DomainData],
    labels: Sequence[IntArray],
    domains: Sequence[Any],
    names: Sequence[str] | None,
    groups: Sequence[int] | None,
) -> tuple[Reference, FeatureModel | None]:
    """What is usual of the asked features, and how they go with the others."""
    neutral = average_unstable(rows)
    beside = [part.beside(neutral) for part in rows]
    can_ask = all(part.ask is not None for part in rows)
    return Reference.learn(beside, labels, domains, names, groups), FeatureModel.learn(
        rows
    ) if can_ask else None


def _scores(
    log_proba: FloatArray, rows: DomainData, y: IntArray
) -> tuple[dict[str, float], dict[str, float]]:
    """True scores, and these less the expected ones."""
    proba = np.exp(log_proba)
    true = weighted_scores(proba, rows.weight[:, None] * np.eye(proba.shape[1])[y])
    expected = weighted_scores(proba, rows.weight[:, None] * proba)
    return true, {name: value - expected[name] for name, value in true.items()}
