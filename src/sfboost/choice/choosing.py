"""The decision: what moved, and which predictors answer.

One question is asked twice, symmetrically: do the features of one side go with what a classifier of the other
side says as they do in source domains? f_S asks X_U, a classifier of X_U asks X_S. Where neither test finds a
shift the pooled classifier answers, moved to other class shares if the rows ask for it. Where one does, its
features are realigned or, if all of X_U shifted together, learned anew (SFB). Where both do, `shifted_side`
tells which it is put down to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sfboost.diagnostics.result import p_in_words
from sfboost.notices import first_names
from sfboost.shift import Change
from sfboost.shift.testing import LEAST_POWER

#: How much rarer a shift of X_S is taken to be than one of X_U, which the user named as what may shift.
USERS_WORD = 10.0
# Weights below this are none; no candidate is ruled out by more than this before labels are seen.
_NEGLIGIBLE, _NOT_RULED_OUT = 0.01, 0.05

#: What each predictor is, in words.
WORDS = {
    "pooled": "one classifier of all features, as trained",
    "shares": "one classifier of all features, moved to the class shares found here",
    "stable": "the stable features alone",
    "boosted": "the unstable features learned anew (SFB)",
    "realigned": "one classifier of all features, the unstable ones realigned",
    "stable realigned": "one classifier of all features, the stable ones realigned",
}
_DECISIONS = {"pooled": "pooled", "shares": "adapted", "stable": "kept stable"}


@dataclass(frozen=True)
class Choice:
    """Weights of the predictors, and why.

    Attributes
    ----------
    weights : dict of str to float
        They sum to one.
    reason : str
    found : str
        What the tests say: the reason without the answer, which labels may make another.
    """

    weights: dict[str, float]
    reason: str
    found: str = ""

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
        reason = "Every row is labelled: the unstable features are learned from the labels."
        return Choice({"boosted": 1.0}, reason)
    prior = {name: _NOT_RULED_OUT / len(fits) for name in fits}
    for name, weight in choice.weights.items():
        prior[name] += (1.0 - _NOT_RULED_OUT) * weight
    scores = {name: np.log(prior[name]) + fit for name, fit in fits.items()}
    top = max(scores.values())
    weights = _shares({name: float(np.exp(score - top)) for name, score in scores.items()})
    same = weights == choice.weights
    now = "stays the same" if same else f"is {in_words(weights)}"
    so_far = choice.reason if same else choice.found  # not an answer that is no longer given
    reason = f"{so_far} With {n_labelled} label{'s' * (n_labelled > 1)} the answer {now}."
    if set(weights) != {"boosted"}:
        reason += (
            " They also recalibrate it: how sure it is, and how frequent it takes each class to be."
            if random
            else " The labelled rows are unlike the others: those of rows drawn at random would also tell "
            "how frequent each class is."
        )
    return replace(choice, weights=weights, reason=reason)


def _shares(evidence: dict[str, float]) -> dict[str, float]:
    """Weights that sum to one, without those that are next to nothing."""
    whole = sum(evidence.values())
    kept = {name: part for name, part in evidence.items() if part > _NEGLIGIBLE * whole}
    return {name: part / sum(kept.values()) for name, part in kept.items()}


def reason_of(
    change: Change, stable_change: Change | None, weights: dict[str, float], moved: str, pooled_name: str
) -> tuple[str, str]:
    """Why, in sentences; and the part of it that says what was found. `moved` tells moved class shares."""
    found = _found(change, stable_change, moved)
    answer = in_words(weights)
    if weights == {"pooled": 1.0} and pooled_name:
        answer += f" ({pooled_name})"
    return f"{found} The answer is {answer}.{_what_would_help(change)}", found


def _found(change: Change, stable_change: Change | None, moved: str) -> str:
    """What the tests say."""
    side = shifted_side(change, stable_change)
    told = []
    if change.verdict == "changed":
        told.append(_shifted(change, "unstable", "the stable ones"))
    if stable_change is not None and stable_change.verdict == "changed":
        told.append(_shifted(stable_change, "stable", "the unstable ones"))
    if len(told) > 1:
        told.append(
            f"A shift of one side makes the other look shifted, too: this is put down to the {side} side; "
            "a few labels would tell."
        )
    if told:
        return " ".join(told)
    if change.verdict == "cannot tell":
        why = f"the evidence to expect is {change.power:.1f} times its error, {LEAST_POWER:.0f} is needed"
        why = "there is one source domain" if len(change.own) < 2 else why
        return f"Cannot tell whether a feature shifted ({why}), and no test finds that one did.{moved}"
    p, known = p_in_words(change.p_value), len(change.own)
    return f"No shift was found: features go together as in your {known} source domains ({p}).{moved}"


def _shifted(change: Change, side: str, others: str) -> str:
    names = first_names((f"'{name}'" for name in change.changed), 3)
    p, one = p_in_words(change.p_value), len(change.changed) == 1
    subject = f"The {side} feature {names} goes" if one else f"The {side} features {names} go"
    return f"{subject} with {others} otherwise than in your source domains ({p})."


def _what_would_help(change: Change) -> str:
    if change.verdict != "cannot tell":
        return ""
    if len(change.own) < 2:
        return " To tell, more source domains would help."
    return " To tell, more rows, more source domains or a stable predictor that says more would help."


def in_words(weights: Mapping[str, float]) -> str:
    """One predictor, or what a mixture is made of, the largest part first."""
    parts = sorted(weights.items(), key=lambda part: -part[1])
    if len(parts) == 1:
        return WORDS[parts[0][0]]
    return "mixed: " + "; ".join(f"{WORDS[name]} ({100 * part:.0f} %)" for name, part in parts)
