"""Which answer: pooled where nothing changed, what own domains recommend where something did.

Evidence is calibrated on own domains. After a change the cases of `play` that look like it (their signatures
are near) say what each candidate gains over the stable predictor; the one that gains most, less its standard
error over domains, is taken, and the stable predictor if none gains. Between "nothing changed" and "changed"
the weights move with the p-value of the test and with what is at stake, gain after a change against cost
where nothing changed: an answer does not jump. The gain is at least what the answer to a change believes that
the other would lose on these very rows: own domains do not know how far off a new unit is here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from sfboost.answers.play import AS_IS, Case
from sfboost.answers.quiet import AVERAGED, COMPONENTS
from sfboost.change import Change
from sfboost.change.testing import LEAST_POWER
from sfboost.marginal.probabilities import FloatArray

# From here on a change counts, and here it is taken for sure.
FIRST_DOUBT, _NO_DOUBT = 0.4, 0.02
#: A chance of a change below this is none, and that of none is sure: a plain answer is easier to read.
LEAST_CHANCE = 0.05
# Brier score by which any answer may be worse than another where nothing changed, whatever own domains say.
_LEAST_COST = 0.005
# How far signatures may differ and still be alike: meaning, slope, log unit, share; what else is said.
_ALIKE = np.array([0.5, 0.5, 0.5, 0.3, 0.3])
# Own domains must prefer another answer to pooled by so many standard errors; two domains, by more.
_CLEARLY, _CLEARLY_OF_TWO = 2.0, 4.0
# Prior weight that labels find on all candidates together; weights below the second are none.
_NOT_RULED_OUT, _NEGLIGIBLE = 0.05, 0.01
# Of domains whose rows cannot tell, so many have changed: a guess, worth little against what they look like.
_CHANGES_ARE = 0.2

_NONE = (0.0, 0.0)

WORDS = {
    "pooled": "all features as trained",
    "stable": "the stable features alone",
    "boosted": "the unstable features learned anew (SFB)",
    "mended": "all features as trained, the changed ones put back",
    "dropped": "all features as trained but the changed ones",
    "grafted": "the changed features learned anew on top of all others",
}
#: Answers to rows that nothing happened to, and to no others.
ALSO_QUIET = {
    AVERAGED: "all features, each weighed as in your own domains on average",
    COMPONENTS: "all features as trained, adapted along the directions in which these rows vary most",
}
# Answers to rows that nothing happened to, beside pooled.
_QUIET = ("stable", "boosted", *ALSO_QUIET)
_WORDS = WORDS | ALSO_QUIET


@dataclass(frozen=True)
class Choice:
    """Weights of the candidates, and why.

    Attributes
    ----------
    weights : dict of str to float
        They sum to one.
    decision : {"pooled", "adapted", "blended", "kept stable"}
    reason : str
    gains : dict of str to tuple of float
        On own domains that look like the new one: what each candidate gains over the stable predictor, in
        Brier score or cost for each row, and its standard error.
    """

    weights: dict[str, float]
    decision: str
    reason: str
    gains: dict[str, tuple[float, float]]


def choose(
    change: Change,
    cases: Sequence[Case],
    available: Collection[str],
    learner: str = "",
    believed_loss: Callable[[str, str], float] = lambda answer, other: 0.0,
    chance: float | None = None,
) -> Choice:
    """Weigh the available answers, given what the test says and how they did on own domains.

    `learner` says what the pooled classifier is, for the reason. `believed_loss` is how much worse, in Brier
    score or cost, one answer believes another to be on the new rows. `chance` is the probability of a change
    given many other new domains, if there are: it takes the place of the p-value.
    """
    quiet = quiet_answer(cases, available)
    available = [name for name in available if name in WORDS]
    if change.verdict == "cannot tell" and chance is None:
        # Without any power what the rows look like says nothing either.
        alike = change if len(change.own) > 1 and change.power > 0.0 else None
        gains = _gains(cases, alike, available, _belief(cases))
        best = _most(gains)
        return Choice({best: 1.0}, _kind({best: 1.0}), _cannot_tell(change, best), gains)
    doubt = _doubt(change.p_value) if chance is None else _firm(chance, LEAST_CHANCE)
    if doubt == 0.0:
        return Choice({quiet: 1.0}, _kind({quiet: 1.0}), _unchanged(change, quiet, learner, chance), {})
    gains = _gains([case for case in cases if case.kind != AS_IS], change, available)
    best = max(gains, key=lambda name: gains[name][0] - gains[name][1], default="stable")
    if not gains or gains[best][0] <= gains[best][1]:
        best = "stable"
    weights = {best: 1.0}
    if best != quiet and doubt < 1.0:
        cost = _cost([case for case in cases if case.kind == AS_IS], best, quiet)
        # What is an answer to quiet rows alone is about as good as pooled on others.
        usual = gains.get(quiet, gains.get("pooled", _NONE) if quiet in ALSO_QUIET else _NONE)
        believed = believed_loss(best, quiet)
        gain = max(gains.get(best, _NONE)[0] - usual[0], believed)
        if chance is not None:  # what was learned elsewhere is as wrong as that where nothing changed
            cost = max(cost, believed)
        weight = _stake(doubt, gain, cost)
        weights = {quiet: 1.0 - weight, best: weight}
        weights = {name: part for name, part in weights.items() if part > _NEGLIGIBLE}
        weights = {name: part / sum(weights.values()) for name, part in weights.items()}
    same = quiet in weights and len(weights) == 1 and change.verdict != "changed"
    unit = "in cost a row" if any(case.cost for case in cases) else "in Brier score"
    if same:
        reason = _unchanged(change, quiet, learner, chance)
    else:
        reason = _changed(change, weights, best, gains, unit, chance)
    return Choice(weights, _kind(weights), reason, gains)


def with_labels(choice: Choice, fits: dict[str, float], n_labelled: int, n_rows: int) -> Choice:
    """The same choice after some labels: `fits` are log-likelihoods of the candidates on labelled rows.

    The weights so far are prior probabilities, and no candidate is ruled out. Where every row is labelled
    what the labels teach is the answer.
    """
    if n_labelled == n_rows and "boosted" in fits:
        reason = "Every row is labelled: the unstable features are learned from the labels."
        return Choice({"boosted": 1.0}, "adapted", reason, choice.gains)
    prior = {name: _NOT_RULED_OUT / len(fits) for name in fits}
    for name, weight in choice.weights.items():
        prior[name] += (1.0 - _NOT_RULED_OUT) * weight
    scores = {name: np.log(prior[name]) + fit for name, fit in fits.items()}
    top = max(scores.values())
    weights = {name: float(np.exp(score - top)) for name, score in scores.items()}
    whole = sum(weights.values())
    weights = {name: weight / whole for name, weight in weights.items() if weight / whole > _NEGLIGIBLE}
    whole = sum(weights.values())
    weights = {name: weight / whole for name, weight in weights.items()}
    now = "stays the same" if weights == choice.weights else f"is {_in_words(weights)}"
    reason = f"{choice.reason} With {n_labelled} label{'s' * (n_labelled > 1)} the answer {now}."
    return Choice(weights, _kind(weights), reason, choice.gains)


def _doubt(p_value: float) -> float:
    """How far a change counts, by the p-value of the test; linear in its logarithm."""
    span = np.log(FIRST_DOUBT / _NO_DOUBT)
    doubt = float(np.clip(np.log(FIRST_DOUBT / max(p_value, 1e-300)) / span, 0.0, 1.0))
    return _firm(doubt, _NEGLIGIBLE)


def _firm(doubt: float, least: float) -> float:
    """Next to none is none, and next to sure is sure."""
    return float(np.round(doubt)) if abs(doubt - np.round(doubt)) < least else doubt


def _cost(untouched: Sequence[Case], best: str, quiet: str) -> float:
    """What an answer costs where nothing changed."""
    losses = [case.loss.get(best, case.loss["stable"]) - case.loss[quiet] for case in untouched]
    return max(float(np.mean(losses)) if losses else 0.0, _LEAST_COST)


def _stake(doubt: float, gain: float, cost: float) -> float:
    """Weight of an answer to a change: the odds of a change times what is at stake, gain against cost."""
    odds = doubt / (1.0 - doubt) * max(gain, 0.0) / cost
    return odds / (1.0 + odds)


def portfolio(cases: Sequence[Case], available: Collection[str]) -> Choice:
    """The answer to a domain of which nothing is known: what did best on own domains as they are."""
    gains = _gains([case for case in cases if case.kind == AS_IS], None, available)
    best = _most(gains)
    return Choice({best: 1.0}, _kind({best: 1.0}), f"The answer is {_WORDS[best]}.", gains)


def _most(gains: dict[str, tuple[float, float]]) -> str:
    best = max(gains, key=lambda name: gains[name][0], default="stable")
    return best if gains.get(best, _NONE)[0] > 0.0 else "stable"


def _belief(cases: Sequence[Case]) -> FloatArray:
    """Before the new rows are looked at: the domain is as own ones are, or like one that was changed."""
    untouched = np.array([case.kind == AS_IS for case in cases])
    changed = _CHANGES_ARE / max(int((~untouched).sum()), 1)
    return np.where(untouched, (1.0 - _CHANGES_ARE) / max(int(untouched.sum()), 1), changed)


def quiet_answer(cases: Sequence[Case], available: Collection[str]) -> str:
    """Pooled, unless own domains as they are clearly prefer another."""
    untouched = [case for case in cases if case.kind == AS_IS]
    best, lead = "pooled", 0.0
    for name in _QUIET:
        known = name in available and all(name in case.loss for case in untouched)
        if not known or len(untouched) < 2:
            continue
        gain = np.array([case.loss["pooled"] - case.loss[name] for case in untouched])
        clearly = _CLEARLY if len(gain) > 2 else _CLEARLY_OF_TWO
        least = gain.mean() - clearly * gain.std(ddof=1) / np.sqrt(len(gain))
        if least > lead:
            best, lead = name, float(least)
    return best


def _gains(
    cases: Sequence[Case],
    change: Change | None,
    available: Collection[str],
    belief: FloatArray | None = None,
) -> dict[str, tuple[float, float]]:
    """What each candidate gains over the stable predictor on cases that look like this change.

    `belief` says how likely each case is beforehand. Then few rows, whose signature is mostly chance, change
    it little.
    """
    if not cases:
        return {}
    alike = np.ones(len(cases)) if belief is None else belief
    if change is not None:
        signatures = np.array([case.signature for case in cases])
        # Two classes have one number less, and so have files of before.
        both = min(signatures.shape[1], len(change.signature))
        apart = signatures[:, :both] - np.array(change.signature[:both])
        far = ((apart / _ALIKE[:both]) ** 2).sum(axis=1)
        if belief is not None:
            far *= min(1.0, change.n_rows / float(np.mean([case.n_rows for case in cases])))
        alike = alike * np.exp(-0.5 * (far - far.min())) + 1e-12
    domains = sorted({case.domain for case in cases})
    mine = np.array([[case.domain == domain for case in cases] for domain in domains])
    weight = mine @ alike
    share = weight / weight.sum()
    count = 1.0 / float(share @ share)
    gains = {}
    for name in available:
        if name == "stable":
            continue
        # What cannot be given to a case would have been its next best: all without the changed features.
        gain = np.array([case.loss["stable"] - case.loss.get(name, case.loss["stable"]) for case in cases])
        by_domain = (mine * alike) @ gain / weight
        mean = float(share @ by_domain)
        spread = float(share @ (by_domain - mean) ** 2) * count / max(count - 1.0, 0.5)
        gains[name] = (mean, float(np.sqrt(spread / count)))
    return gains


def _kind(weights: dict[str, float]) -> str:
    if len(weights) > 1:
        return "blended"
    (name,) = weights
    return {"pooled": "pooled", AVERAGED: "pooled", "stable": "kept stable"}.get(name, "adapted")


def _p(change: Change) -> str:
    return "p < 0.001" if change.p_value < 0.001 else f"p = {change.p_value:.3f}"


def _as_ever(change: Change) -> str:
    return f"the unstable features speak as in your own {len(change.own)} domains ({_p(change)})"


def _likely(chance: float) -> str:
    return (
        f"given all new domains, one is {'less than 1' if chance < 0.01 else f'{100 * chance:.0f}'} % likely"
    )


def _unchanged(change: Change, quiet: str, learner: str, chance: float | None) -> str:
    what = f"Nothing changed: {_as_ever(change)}."
    if chance is not None and change.verdict == "cannot tell":
        what = f"These rows alone cannot tell whether a meaning changed; {_likely(chance)}."
    reason = f"{what} The answer is {_WORDS[quiet]}"
    if quiet != "pooled":
        return f"{reason}, which your own domains clearly prefer to all features as trained."
    return reason + f" ({learner})" * bool(learner) + "."


def _cannot_tell(change: Change, best: str) -> str:
    if len(change.own) < 2:
        why, help_ = "there is one training domain", "more training domains"
    else:
        why = f"power {change.power:.1f}, {LEAST_POWER:.0f} is needed"
        help_ = "more rows, more training domains or a stable predictor that says more"
    return (
        f"Cannot tell whether a meaning changed ({why}): the answer is {_WORDS[best]}, which does best on "
        f"your own domains that look like this one. To tell, {help_} would help."
    )


def _changed(
    change: Change,
    weights: dict[str, float],
    best: str,
    gains: dict[str, tuple[float, float]],
    unit: str,
    chance: float | None,
) -> str:
    features = [feature for feature in change.features if feature.name in change.suspects]
    features.sort(key=lambda feature: -feature.importance)
    names = ", ".join(f"'{feature.name}'" for feature in features[:3])
    names += f" and {len(features) - 3} more" if len(features) > 3 else ""
    if change.verdict == "changed":
        sure = "Changed" if len(weights) == 1 else "Probably changed"
        what = f"{sure}: {names} {'means' if len(features) == 1 else 'mean'} something else than in your own "
        what += f"{len(change.own)} domains ({_p(change)})."
    elif chance is not None:
        what = f"These rows alone do not show a change ({_p(change)}); {_likely(chance)}, in {names}."
    else:
        what = f"No change is shown, and none is excluded ({_p(change)}): it would be in {names}."
    if len(weights) > 1:
        return f"{what} The answer is {_in_words(weights)}."
    if best not in weights:
        return (
            f"{what} The answer is {_in_words(weights)}: on your own domains others would cost more where "
            "nothing changed than they gain after such a change."
        )
    if best == "stable":
        return (
            f"{what} On your own domains, changed like this, no other answer beats the stable features by "
            "more than its error."
        )
    gain, error = gains[best]
    return (
        f"{what} The answer is {_in_words(weights)}: on your own domains, changed like this, it beats the "
        f"stable features by {gain:.3f} ± {error:.3f} {unit}."
    )


def _in_words(weights: dict[str, float]) -> str:
    """One answer, or what a blend is made of, the largest part first."""
    if len(weights) == 1:
        return _WORDS[next(iter(weights))]
    parts = sorted(weights.items(), key=lambda part: -part[1])
    return f"mixed: {'; '.join(f'{_WORDS[name]} ({100 * part:.0f} %)' for name, part in parts)}"
