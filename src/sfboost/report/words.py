"""Words for facts: what was done, why, and what follows, in sentences that a colleague understands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.stats import norm

from sfboost.boosting import AdaptedClassifier
from sfboost.choice.reasons import WORDS
from sfboost.choice.recalibrating import RecalibratedPredictor
from sfboost.notices import first_names
from sfboost.shift import Change, Shift
from sfboost.shift.by_feature import FeatureMeaning

if TYPE_CHECKING:
    from sfboost.report.facts import Changes

_WORDS = (
    ("X_U follows f_S", "the unstable features follow the stable predictor"),
    ("X_U repeats X_S", "the unstable features repeat the stable ones"),
    ("X_U shows", "The unstable features show"),
    ("X_U", "the unstable features"),
    ("X_S", "the stable features"),
    ("f_S", "the stable predictor"),
)

#: What stands for what in the figures.
SYMBOLS = (
    ("Y", "the class"),
    ("X_S, X_U", "the stable and the unstable features"),
    ("f_S", "the stable predictor's probabilities"),
    ("s", "its informativeness: 0 knows nothing, 1 knows everything"),
    ("p", "chance of so strong a sign if the assumption holds"),
    ("nats", "unit of log loss"),
)

#: The tone of a headline where none can be trusted.
NO_ANSWER = "no answer"
# A feature of which less than this is left has turned round.
_TURNED = -0.3
# A shift is "seen" where four tests of five find it, by convention.
_POWER = 0.8


@dataclass(frozen=True)
class Headline:
    """What was done and why.

    Attributes
    ----------
    sentence : str
        What was done.
    because : str
        Why, with the numbers.
    advice : str
        What follows from it for the reader.
    count : str
        How many predictions are not those of the stable features.
    evidence : str
        How sure the test of shift is: its p-value and its power in words; empty where none was made.
    tone : {"", "cannot tell", "no answer"}
        What else than the decision its colour is to say: good news is green, and this is none.
    """

    sentence: str
    because: str
    advice: str
    count: str = ""
    evidence: str = ""
    tone: str = ""


def in_words(reason: str) -> str:
    """A reason without symbols.

    Examples
    --------
    >>> in_words("X_U follows f_S within a class, or f_S errs")
    'the unstable features follow the stable predictor within a class, or the stable predictor errs'
    """
    for symbol, words in _WORDS:
        reason = reason.replace(symbol, words)
    return reason


def has_turned(feature: FeatureMeaning) -> bool:
    """Whether a feature says the opposite here of what it said in training."""
    return feature.verdict == "changed" and feature.left < _TURNED


_NONE = "in your source domains, each left out in turn, none was better than a guess"
_HELPLESS = "Label some of these rows (--labels), or add source domains, before you use it."
_UNSURE = "Label some of these rows (--labels), or name the columns that you know to be stable (--stable)."
_ALONE = "the stable features alone"
_UNSEEN = "What no test without labels can see: a shift after which all features go together as before."
_TAKEN = "It takes the {} features to mean what they meant in training; no test without labels can show it."
#: What follows from the predictor that has most weight.
_ADVISED = {
    "pooled": _UNSEEN,
    "shares": _UNSEEN,
    "boosted": _TAKEN.format("stable"),
    "realigned": _TAKEN.format("other"),
    "stable realigned": _TAKEN.format("other"),
    "stable": "This is the safe answer, not an error. A few labels may change it.",
}


def headline(
    adapted: AdaptedClassifier,
    changes: Changes,
    features: tuple[FeatureMeaning, ...],
    stable_features: tuple[FeatureMeaning, ...] = (),
    *,
    unsure: bool = False,
) -> Headline:
    """Put the decision into words; of features it says no more than their own verdicts do.

    `unsure` is whether no column is shown to be stable: rows cannot say then which side shifted.
    """
    best, because = adapted.best, f"Why: {in_words(str(adapted.reason_))}"
    if best is None:  # no test of shift was made
        name = "stable" if adapted.decision_ == "kept stable" else "boosted"
        return Headline(f"Use {WORDS[name]}.", because, _ADVISED[name], _count(changes))
    shift, weights = best.shift, best.choice.weights
    most = max(weights, key=weights.__getitem__)
    use = f"a mixture, above all {WORDS[most]}" if len(weights) > 1 else WORDS[most]
    evidence, n_labelled = _evidence(shift.unstable), adapted.adaptation.n_labelled
    helpless = None if n_labelled else adapted.model.training_.record.helpless
    if helpless is not None:  # nobody knows whether it is better than anything
        sentence = f"No answer can be trusted here: {_NONE}. What you get is {use}."
        because = f"Why: {helpless}. {in_words(str(adapted.reason_))}"
        return Headline(sentence, because, _HELPLESS, _count(changes), evidence, NO_ANSWER)
    if unsure and shift.side != "nothing" and not n_labelled:
        sentence = f"Use {use}, with care: features shifted here, and the rows cannot say which."
        return Headline(sentence, because, _UNSURE, _count(changes), evidence, "cannot tell")
    why, than = _found(shift), _ALONE
    if n_labelled:
        why = f"{n_labelled} label{'s' * (n_labelled > 1)} weighed the answers"
        if isinstance(best.answers[most], RecalibratedPredictor):
            why += " and recalibrated it"
            than += ", without labels"
    # A shift of one side shows on both: what is said is of the one that it is put down to.
    turned = [
        one.name for one in (stable_features if shift.side == "stable" else features) if has_turned(one)
    ]
    tone = "cannot tell" if shift.verdict == "cannot tell" else ""
    sentence = f"Use {use}: {why}.{_opposite(turned)}"
    return Headline(sentence, because, _ADVISED[most], _count(changes, than), evidence, tone)


def _count(changes: Changes, than: str = _ALONE) -> str:
    if not changes.n_changed:
        return f"Every predicted class is that of {than}."
    return f"{changes.n_changed} of {changes.n_rows} predicted classes differ from those of {than}."


#: What the tests found, no stronger than they say it.
_FOUND = {
    "unstable": "the unstable features shifted here",
    "stable": "the stable features shifted here",
    "class shares": "no feature is seen to have shifted, but the class shares have moved",
    "cannot tell": "these rows cannot say whether a feature shifted",
    "nothing": "no shift of a feature was found here",
}


def _found(shift: Shift) -> str:
    if shift.undecided:
        return (
            "stable and unstable features no longer go together as in training, more likely because the "
            f"{shift.side} ones shifted"
        )
    return _FOUND[shift.verdict]


def _evidence(change: Change) -> str:
    """The p-value and the power of the test in words.

    Of a shift that takes the share x of what the features say, x times the power is the expected evidence in
    standard errors: what four tests of five find follows.
    """
    if change.verdict == "cannot tell":
        return "These rows are too few, or say too little, for a shift to be seen."
    if change.verdict == "changed":
        odds = "less than 1 in 1000" if change.p_value < 0.001 else f"about 1 in {1.0 / change.p_value:.0f}"
        return f"Without a shift, {odds} target domains would show so strong a sign of one."
    share = (norm.ppf(1.0 - change.level / 2.0) + norm.ppf(_POWER)) / change.power
    if share > 1.0:
        return "Had the unstable features lost all that they say, it would probably have been seen."
    return (
        f"Had the unstable features lost {share:.0%} of what they say, it would have been seen in four of "
        "five such tables."
    ).replace("%", " %")


def _opposite(names: list[str]) -> str:
    """That features turned round, if any did."""
    if not names:
        return ""
    say, they_say = ("says", "it says") if len(names) == 1 else ("say", "they say")
    return f" Here {first_names(names, 4)} {say} the opposite of what {they_say} in training."
