"""Which answer: pooled where nothing changed, what own domains recommend where something did.

Evidence is calibrated on own domains. After a change the cases of `play` that look like it (their signatures
are near) say what each candidate gains over the stable predictor; the one that gains most, less its standard
error over domains, is taken, and the stable predictor if none gains. Between "nothing changed" and "changed"
the weights move with the p-value of the test and with what is at stake, gain after a change against cost
where nothing changed: an answer does not jump. The gain is at least what the answer to a change believes that
the other would lose on these very rows: own domains do not know how far off a new unit is here. Rows that
cannot tell are no other case: what little they say is in their p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfboost.adaptation.scores import Yardstick
from sfboost.answers.play import AS_IS, Case
from sfboost.answers.quiet import AVERAGED, COMPONENTS
from sfboost.change import Change, FeatureChange
from sfboost.change.testing import LEAST_POWER
from sfboost.diagnostics.result import p_in_words
from sfboost.notices import first_names

# From here on a change counts, and here it is taken for sure.
FIRST_DOUBT, _NO_DOUBT = 0.4, 0.02
# By so much any answer may be worse than another where nothing changed, whatever own domains say. Brier
# scores differ by about half of what decisions do.
_LEAST_COST, _LEAST_BRIER = 0.005, 0.0025
# How far signatures may differ and still be alike: meaning, slope, log unit, share; what else is said.
_ALIKE = np.array([0.5, 0.5, 0.5, 0.3, 0.3])
# Own domains must prefer another answer to pooled by so many standard errors; two domains, by more.
_CLEARLY, _CLEARLY_OF_TWO = 2.0, 4.0
# Prior weight that labels find on all candidates together; weights below the second are none.
_NOT_RULED_OUT, _NEGLIGIBLE = 0.05, 0.01
# A blend with so much of one answer goes by its name.
_NEARLY_ALL = 0.95

_NONE = (0.0, 0.0)

WORDS = {
    "pooled": "all features as trained",
    "stable": "the stable features alone",
    "boosted": "the unstable features learned anew (SFB)",
    "mended": "all features as trained, the changed ones put back to what they meant",
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
        By the answer that has 95 % of the weight or more; "blended" if none has.
    reason : str
    gains : dict of str to tuple of float
        On own domains that look like the new one: what each candidate gains over the stable predictor, by
        what answers are chosen, and its standard error.
    found : str
        What the test says: the reason without the answer, which labels may make another.
    """

    weights: dict[str, float]
    decision: str
    reason: str
    gains: dict[str, tuple[float, float]]
    found: str = ""


def choose(
    change: Change,
    cases: Sequence[Case],
    available: Collection[str],
    learner: str = "",
    believed_loss: Callable[[str, str], float] = lambda answer, other: 0.0,
) -> Choice:
    """Weigh the available answers, given what the test says and how they did on own domains.

    `learner` says what the pooled classifier is, for the reason. `believed_loss` is how much worse one
    answer believes another to be on the new rows.
    """
    cases = [case for case in cases if case.judges]
    quiet = quiet_answer(cases, available)
    available = [name for name in available if name in WORDS]
    doubt = _doubt(change.p_value)
    if doubt == 0.0:
        found = _not_changed(change)
        reason = _unchanged(change, found, quiet, learner)
        return Choice({quiet: 1.0}, _kind({quiet: 1.0}), reason, {}, found)
    gains = _gains([case for case in cases if case.kind != AS_IS], change, available)
    best = max(gains, key=lambda name: gains[name][0] - gains[name][1], default="stable")
    if not gains or gains[best][0] <= gains[best][1]:
        best = "stable"
    weights = {best: 1.0}
    if best != quiet and doubt < 1.0:
        cost = _cost([case for case in cases if case.kind == AS_IS], best, quiet)
        # What is an answer to quiet rows alone is about as good as pooled on others.
        usual = gains.get(quiet, gains.get("pooled", _NONE) if quiet in ALSO_QUIET else _NONE)
        gain = max(gains.get(best, _NONE)[0] - usual[0], believed_loss(best, quiet))
        weight = _stake(doubt, gain, cost)
        weights = {quiet: 1.0 - weight, best: weight}
        weights = {name: part for name, part in weights.items() if part > _NEGLIGIBLE}
        weights = {name: part / sum(weights.values()) for name, part in weights.items()}
    same = quiet in weights and len(weights) == 1 and change.verdict != "changed"
    if same:
        found = _not_changed(change)
        reason = _unchanged(change, found, quiet, learner)
    else:
        found = _changed(change, len(weights) == 1)
        reason = _answered(change, found, weights, best, gains, cases) + _what_would_help(change)
    return Choice(weights, _kind(weights), reason, gains, found)


def with_labels(
    choice: Choice, fits: dict[str, float], n_labelled: int, n_rows: int, random: bool = True
) -> Choice:
    """The same choice after some labels: `fits` are log-likelihoods of the candidates on labelled rows.

    `random` is whether the labelled rows look drawn so.

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
    least = _NEGLIGIBLE * sum(weights.values())
    weights = {name: weight for name, weight in weights.items() if weight > least}
    whole = sum(weights.values())
    weights = {name: weight / whole for name, weight in weights.items()}
    same = weights == choice.weights
    now = "stays the same" if same else f"is {_in_words(weights)}"
    so_far = choice.reason if same else choice.found  # not an answer that is no longer given
    reason = f"{so_far} With {n_labelled} label{'s' * (n_labelled > 1)} the answer {now}."
    if set(weights) != {"boosted"}:
        reason += (
            " They also put right how sure it is, and how frequent it takes each class to be."
            if random
            else " The labelled rows are unlike the others: those of rows drawn at random would also put "
            "right how frequent it takes each class to be."
        )
    return replace(choice, weights=weights, decision=_kind(weights), reason=reason)


def _doubt(p_value: float) -> float:
    """How far a change counts, by the p-value of the test; linear in its logarithm."""
    span = np.log(FIRST_DOUBT / _NO_DOUBT)
    doubt = float(np.clip(np.log(FIRST_DOUBT / max(p_value, 1e-300)) / span, 0.0, 1.0))
    # Next to none is none, and next to sure is sure.
    return float(np.round(doubt)) if abs(doubt - np.round(doubt)) < _NEGLIGIBLE else doubt


def _cost(untouched: Sequence[Case], best: str, quiet: str) -> float:
    """What an answer costs where nothing changed."""
    losses = [case.loss.get(best, case.loss["stable"]) - case.loss[quiet] for case in untouched]
    least = _LEAST_BRIER if untouched and untouched[0].metric == "brier" else _LEAST_COST
    return max(float(np.mean(losses)) if losses else 0.0, least)


def _stake(doubt: float, gain: float, cost: float) -> float:
    """Weight of an answer to a change: the odds of a change times what is at stake, gain against cost."""
    odds = doubt / (1.0 - doubt) * max(gain, 0.0) / cost
    return odds / (1.0 + odds)


def quiet_answer(cases: Sequence[Case], available: Collection[str]) -> str:
    """Pooled, unless own domains as they are clearly prefer another."""
    untouched = [case for case in cases if case.kind == AS_IS and case.judges]
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
    cases: Sequence[Case], change: Change | None, available: Collection[str]
) -> dict[str, tuple[float, float]]:
    """What each candidate gains over the stable predictor on cases that look like this change."""
    if not cases:
        return {}
    alike = np.ones(len(cases))
    if change is not None:
        signatures = np.array([case.signature for case in cases])
        apart = signatures - np.array(change.signature)
        far = ((apart / _ALIKE[: apart.shape[1]]) ** 2).sum(axis=1)  # two classes have one number less
        alike = np.exp(-0.5 * (far - far.min())) + 1e-12
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
    name = max(weights, key=weights.__getitem__)
    if weights[name] < _NEARLY_ALL:
        return "blended"
    return {"pooled": "pooled", AVERAGED: "pooled", "stable": "kept stable"}.get(name, "adapted")


def _as_ever(change: Change) -> str:
    p = p_in_words(change.p_value)
    return f"the unstable features speak as in your own {len(change.own)} domains ({p})"


def _not_changed(change: Change) -> str:
    """What the test says where no change counts."""
    if change.verdict != "cannot tell":
        return f"Nothing changed: {_as_ever(change)}."
    return f"{_cannot_tell(change)}, and nothing speaks for it."


def _unchanged(change: Change, found: str, quiet: str, learner: str) -> str:
    reason = f"{found} The answer is {_WORDS[quiet]}"
    if quiet != "pooled":
        reason += ", which your own domains clearly prefer to all features as trained."
    else:
        reason += f" ({learner})" * bool(learner) + "."
    return reason + _what_would_help(change)


def _cannot_tell(change: Change) -> str:
    why = f"the evidence to expect is {change.power:.1f} times its error, {LEAST_POWER:.0f} is needed"
    if len(change.own) < 2:
        why = "there is one training domain"
    return f"Cannot tell whether a meaning changed ({why})"


def _what_would_help(change: Change) -> str:
    if change.verdict != "cannot tell":
        return ""
    if len(change.own) < 2:
        return " To tell, more training domains would help."
    return " To tell, more rows, more training domains or a stable predictor that says more would help."


def _changed(change: Change, sure: bool) -> str:
    """What the test says where a change counts."""
    p = p_in_words(change.p_value)
    features = [feature for feature in change.features if feature.name in change.suspects]
    if change.verdict == "changed":
        return f"{'Changed' if sure else 'Probably changed'}: {_whose(change, features, p)}."
    names = _few(sorted(features, key=lambda feature: -feature.importance))
    if change.verdict == "cannot tell":
        return f"{_cannot_tell(change)}, but something speaks for it ({p}), in {names}."
    return f"A change is neither shown nor ruled out ({p}); if there is one, it is in {names}."


def _whose(change: Change, suspects: Sequence[FeatureChange], p: str) -> str:
    """Whose meaning changed: of those that it is put down to, the ones that show it by themselves."""
    # Where all are suspected none was singled out, and the least of many p-values is small by chance.
    tried = len(suspects) if len(suspects) == len(change.features) else 1
    alone = len(change.features) == 1
    shown = [feature for feature in suspects if alone or feature.p_value * tried < change.level]
    shown.sort(key=lambda feature: feature.p_value)
    than = f"something else than in your own {len(change.own)} domains ({p})"
    if not shown:
        return f"the unstable features together mean {than}; which of them cannot be told"
    others = len(suspects) - len(shown)
    perhaps = f", and perhaps {others} more" if others else ""
    return f"{_few(shown)} {'means' if len(shown) == 1 else 'mean'} {than}{perhaps}"


def _few(features: Sequence[FeatureChange]) -> str:
    return first_names((f"'{feature.name}'" for feature in features), 3)


def _answered(
    change: Change,
    what: str,
    weights: dict[str, float],
    best: str,
    gains: dict[str, tuple[float, float]],
    cases: Sequence[Case],
) -> str:
    if len(weights) > 1:
        words = _WORDS if change.verdict == "changed" else {name: _suspected(name) for name in weights}
        return f"{what} The answer is {_in_words(weights, words)}."
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
        f"stable features by {Yardstick(cases[0].metric).told(gain, error, 2)}."
    )


def _suspected(name: str) -> str:
    """An answer in words where no change is shown: what it mends is a suspicion."""
    return _WORDS[name].replace("the changed", "the suspected")


def _in_words(weights: dict[str, float], words: Mapping[str, str] = _WORDS) -> str:
    """One answer, or what a blend is made of, the largest part first."""
    parts = sorted(weights.items(), key=lambda part: -part[1])
    if len(parts) == 1:
        return words[parts[0][0]]
    told = [f"{words[name]} ({100 * part:.0f} %)" for name, part in parts]
    if parts[0][1] >= _NEARLY_ALL:
        rest = told[1] if len(told) == 2 else f"{len(told) - 1} others"
        return f"{told[0]}, with a little of {rest}"
    return f"mixed: {'; '.join(told)}"
