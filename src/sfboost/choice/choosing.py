"""The decision: what moved, and which predictors answer.

One question is asked twice, symmetrically: do the features of one side go with what a classifier of the other
side says as they do in source domains? f_S asks X_U, a classifier of X_U asks X_S. Where neither test finds a
shift the pooled classifier answers, moved to other class shares if the rows ask for it. Where one does, its
features are realigned or, if all of X_U shifted together, learned anew (SFB). Where both do, `shifted_side`
tells which it is put down to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sfboost.choice.reasons import Reason
from sfboost.shift import Change

#: How much rarer a shift of X_S is taken to be than one of X_U, which the user named as what may shift.
USERS_WORD = 10.0
# Weights below this are none; no candidate is ruled out by more than this before labels are seen.
_NEGLIGIBLE, _NOT_RULED_OUT = 0.01, 0.05

_DECISIONS = {"pooled": "pooled", "shares": "adapted", "stable": "kept stable"}


@dataclass(frozen=True, eq=False)
class Choice:
    """Weights of the predictors, and why.

    Attributes
    ----------
    weights : dict of str to float
        They sum to one.
    reason : Reason
    """

    weights: dict[str, float]
    reason: Reason

    @property
    def decision(self) -> str:
        """What has most weight: "pooled", "adapted" or "kept stable"."""
        return _DECISIONS.get(max(self.weights, key=self.weights.__getitem__), "adapted")


def shifted_side(change: Change, stable_change: Change | None) -> str:
    """Which side shifted: "nothing", "unstable" or "stable".

    A feature that shifted makes all features of the other side look shifted that go with it. Where both sides
    do, the stronger evidence tells, that of X_S by a factor of `USERS_WORD`; and of two sides that shifted
    altogether, which no rows can tell apart, it is X_U: the user said that X_S is stable.
    """
    unstable = change.verdict == "changed"
    if stable_change is None or stable_change.verdict != "changed":
        return "unstable" if unstable else "nothing"
    if not unstable:
        return "stable"
    altogether = all(len(one.suspects) == len(one.features) for one in (change, stable_change))
    stronger = USERS_WORD * stable_change.p_value < change.p_value
    return "stable" if stronger and not altogether else "unstable"


def with_labels(
    choice: Choice, fits: dict[str, float], n_labelled: int, n_rows: int, random: bool = True
) -> Choice:
    """The same choice after some labels: `fits` are log-likelihoods of the predictors on labelled rows.

    `random` is whether the labelled rows look drawn so.

    The weights so far are prior probabilities, and no predictor is ruled out. Where every row is labelled
    what the labels teach is the answer.
    """
    if n_labelled == n_rows and "boosted" in fits:
        return Choice({"boosted": 1.0}, Reason("all_labelled"))
    prior = {name: _NOT_RULED_OUT / len(fits) for name in fits}
    for name, weight in choice.weights.items():
        prior[name] += (1.0 - _NOT_RULED_OUT) * weight
    scores = {name: np.log(prior[name]) + fit for name, fit in fits.items()}
    top = max(scores.values())
    weights = _shares({name: float(np.exp(score - top)) for name, score in scores.items()})
    reason = choice.reason.with_values(weights=weights, n_labels=n_labelled, random=random)
    return replace(choice, weights=weights, reason=reason)


def _shares(evidence: dict[str, float]) -> dict[str, float]:
    """Weights that sum to one, without those that are next to nothing."""
    whole = sum(evidence.values())
    kept = {name: part for name, part in evidence.items() if part > _NEGLIGIBLE * whole}
    return {name: part / sum(kept.values()) for name, part in kept.items()}
