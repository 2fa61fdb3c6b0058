"""Why an answer was given: a code with values, and the sentences that are made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sfboost.adaptation.scores import Yardstick
from sfboost.diagnostics.result import p_in_words
from sfboost.notices import first_names
from sfboost.shift.testing import LEAST_POWER

#: What each predictor is, in words.
WORDS = {
    "pooled": "one classifier of all features, as trained",
    "shares": "one classifier of all features, moved to the class shares found here",
    "stable": "the stable features alone",
    "boosted": "SFB (the unstable features re-learned)",
    "realigned": "one classifier of all features, the unstable ones realigned",
    "stable realigned": "one classifier of all features, the stable ones realigned",
}


@dataclass(frozen=True, eq=False)
class Reason:
    """What was found, what was done, and what that rests on. `str` puts it in sentences.

    Attributes
    ----------
    code : str
        What was found. "no_shift", "shares_moved", "unstable_shifted", "stable_shifted" or "cannot_tell" of
        features and class shares; "learned" or "refused" where nothing is known of source domains and X_U
        was learned anew, or not; "all_labelled".
    values : dict
        Plain values, by name: p-values, features, class shares, weights of the predictors, labels.

    Examples
    --------
    >>> found = {"p_value": 0.4, "n_domains": 3, "weights": {"pooled": 1.0}}
    >>> str(Reason("no_shift", found))[:72]
    'No shift was found: features go together as in your 3 source domains (p '
    """

    code: str
    values: dict[str, Any] = field(default_factory=dict)

    def with_values(self, **values: Any) -> Reason:
        """The same with more values."""
        return replace(self, values=self.values | values)

    def __str__(self) -> str:
        said = self.values
        if self.code in ("learned", "refused"):
            return str(said["because"])
        if self.code == "all_labelled":
            return "Every row is labelled: the unstable features are learned from the labels."
        sentences = [*_found(self.code, said), *_doubted(said), _answer(said), *_what_would_help(self)]
        return " ".join([*sentences, *_bounded(said)])


def _found(code: str, said: Mapping[str, Any]) -> list[str]:
    """What the tests say."""
    told = []
    if said.get("unstable"):
        told.append(_shifted(said["unstable"], said["p_value"], "unstable", "the stable ones"))
    if said.get("stable"):
        told.append(_shifted(said["stable"], said["stable_p_value"], "stable", "the unstable ones"))
    if len(told) > 1:
        side = "unstable" if code == "unstable_shifted" else "stable"
        told.append(
            f"A shift of one side makes the other look shifted, too. More likely the {side} side shifted; a "
            "few labels would tell."
        )
    if code == "cannot_tell":
        why = (
            f"unstable features that meant nothing here would show by {said['power']:.1f} standard errors, "
            f"and {LEAST_POWER:.0f} are needed"
        )
        why = "there is one source domain" if said["n_domains"] < 2 else why
        told.append(f"Cannot tell whether a feature shifted: {why}.")
    if code in ("no_shift", "shares_moved"):
        # A test that sees nothing has p-values near one half, whatever the rows: no figure to be told.
        p = p_in_words(said["p_value"]) if said["p_value"] < 0.4 else "p > 0.4"
        known = said["n_domains"]
        told.append(f"No shift was found: features go together as in your {known} source domains ({p}).")
    if said.get("shares"):
        name, before, after = said["shares"]
        told.append(
            f"The class shares moved: {name} from {100 * before:.0f} % in training to about "
            f"{100 * after:.0f} % here."
        )
    return told


def _shifted(names: list[str], p_value: float, side: str, others: str) -> str:
    told, p = first_names((f"'{name}'" for name in names), 3), p_in_words(p_value)
    one = len(names) == 1
    subject = (
        f"The {side} feature {told} no longer goes" if one else f"The {side} features {told} no longer go"
    )
    return f"{subject} with {others} as in your source domains ({p})."


def _doubted(said: Mapping[str, Any]) -> list[str]:
    if not said.get("doubt"):
        return []
    return [f"A shift may be missed here, or seen where there is none: {said['doubt']}."]


def _answer(said: Mapping[str, Any]) -> str:
    answer, n_labels = in_words(said["weights"]), said.get("n_labels", 0)
    if said["weights"] == {"pooled": 1.0} and said.get("classifier"):
        answer += f" ({said['classifier']})"
    if not n_labels:
        return f"The answer is {answer}."
    told = f"With {n_labels} label{'s' * (n_labels > 1)} the answer is {answer}."
    if set(said["weights"]) == {"boosted"}:
        return told
    if said["random"]:
        return f"{told} They also recalibrate it: how sure it is, and how frequent it takes each class to be."
    return told + (
        " The labelled rows are unlike the others: those of rows drawn at random would also tell how "
        "frequent each class is."
    )


def _what_would_help(reason: Reason) -> list[str]:
    if reason.code != "cannot_tell":
        return []
    if reason.values["n_domains"] < 2:
        return ["To tell, more source domains would help."]
    return ["To tell, more rows, more source domains or a stable predictor that says more would help."]


def _bounded(said: Mapping[str, Any]) -> list[str]:
    """What a safe answer was held to."""
    if "kept" not in said:
        return []
    other = WORDS[said["instead_of"]]
    if "least" not in said:
        return [f"What {other} would gain over the stable features cannot be told ({said['why']})."]
    by = Yardstick(said["metric"])
    gain, least = by.told(said["gain"], sign="+"), by.told(said["least"], sign="+")
    verb = "may gain nothing" if said["kept"] else "is better"
    told = f"Compared with the stable features alone {other} {verb}: "
    return [f"{told}{gain} is expected, {least} at least."]


def in_words(weights: Mapping[str, float]) -> str:
    """One predictor, or what a mixture is made of, the largest part first."""
    parts = sorted(weights.items(), key=lambda part: -part[1])
    if len(parts) == 1:
        return WORDS[parts[0][0]]
    return "mixed: " + "; ".join(f"{WORDS[name]} ({100 * part:.0f} %)" for name, part in parts)
