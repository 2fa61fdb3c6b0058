"""Words for facts: what was done, why, and what follows, in sentences that a colleague understands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfboost.boosting import AdaptedClassifier
from sfboost.choice import BestAnswer
from sfboost.choice.choosing import WORDS, shifted_side
from sfboost.choice.recalibrating import RecalibratedPredictor
from sfboost.shift.by_feature import FeatureMeaning

if TYPE_CHECKING:
    from sfboost.report.facts import Changes, ClassStory

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


@dataclass(frozen=True)
class Headline:
    """What was done and why.

    Attributes
    ----------
    kind : {"pooled", "adapted", "kept stable"}
    sentence : str
        What was done.
    because : str
        Why, with the numbers.
    advice : str
        What follows from it for the reader.
    count : str
        How many predictions are not those of the stable features, where the sentence does not say it.
    tone : {"", "cannot tell", "no answer"}
        What else than the kind its colour is to say: good news is green, and this is none.
    """

    kind: str
    sentence: str
    because: str
    advice: str
    count: str = ""
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


def headline(
    adapted: AdaptedClassifier,
    changes: Changes,
    stories: tuple[ClassStory, ...],
    meanings: tuple[FeatureMeaning, ...],
    stable_meanings: tuple[FeatureMeaning, ...] = (),
) -> Headline:
    """Put the decision into words; of features it says no more than their own verdicts do.

    `meanings` are those of the unstable features.
    """
    kind = adapted.decision_
    if adapted.best is not None:
        return _best_headline(adapted, adapted.best, changes, meanings, stable_meanings)
    count = f"{changes.n_changed} of {changes.n_rows} predicted classes changed"
    because = f"Why: {in_words(adapted.reason_)}."
    if kind == "kept stable":
        return Headline(
            kind,
            "Kept the stable predictor: the unstable features are not used here, and no prediction changed.",
            because,
            "This is the safe answer, not an error. More rows, a few labels or better stable features may "
            "change it.",
        )
    # Without a standard error nobody knows whether a slope is beyond it.
    flipped = [one.name for part in stories for one in part.features if one.reversed and one.error]
    advice = (
        "Adapted predictions are right only as far as the assumptions below hold; what no test can show is "
        "whether stable and unstable features are independent within a class in this domain."
    )
    sentence = f"Adapted: the unstable features are used with the meaning they have here; {count}."
    sentence += _opposite(list(dict.fromkeys(flipped)))
    return Headline(kind, sentence, because, advice)


_NONE = "on your own domains none was better than a guess"
_HELPLESS = "Label some of these rows (--labels), or add training domains, before you use it."
# A feature of which less than this is left has turned round.
_TURNED = -0.3
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


def _best_headline(
    adapted: AdaptedClassifier,
    best: BestAnswer,
    changes: Changes,
    meanings: tuple[FeatureMeaning, ...],
    stable_meanings: tuple[FeatureMeaning, ...],
) -> Headline:
    """The headline of answer="best": what has most weight, and what was found."""
    kind, weights = adapted.decision_, best.choice.weights
    side = shifted_side(best.change, best.stable_change)
    most = max(weights, key=weights.__getitem__)
    use = f"a mixture, above all {WORDS[most]}" if len(weights) > 1 else WORDS[most]
    why, than = _found(best, side), "what the stable features say"
    n_labelled = adapted.adaptation.n_labelled
    if n_labelled:
        why = f"{n_labelled} label{'s' * (n_labelled > 1)} weighed the answers"
        if isinstance(best.answers[most], RecalibratedPredictor):
            why += " and recalibrated it"
            than += " without them"
    # A shift of one side shows on both: what is said is of the one that it is put down to.
    asked = stable_meanings if side == "stable" else meanings
    turned = [one.name for one in asked if one.verdict == "changed" and one.left < _TURNED]
    sentence = f"Use {use}: {why}.{_opposite(turned)}"
    count = (
        f"{changes.n_changed} of {changes.n_rows} predicted classes are not {than}."
        if changes.n_changed
        else f"Every predicted class is {than}."
    )
    because = in_words(adapted.reason_)
    helpless = None if n_labelled else adapted.model.training_.record.helpless
    if helpless is None:
        tone = "cannot tell" if side == "nothing" and best.change.verdict == "cannot tell" else ""
        return Headline(kind, sentence, f"Why: {because}", _ADVISED[most], count, tone)
    # Not "use it": nobody knows whether it is better than anything.
    sentence = f"No answer can be trusted here: {_NONE}. What you get is {use}."
    return Headline(kind, sentence, f"Why: {helpless}. {because}", _HELPLESS, count, NO_ANSWER)


def _found(best: BestAnswer, side: str) -> str:
    """What the tests found, no stronger than they say it; `side` is the one that a shift is put down to."""
    if side != "nothing":
        both = best.stable_change is not None and best.change.verdict == best.stable_change.verdict
        if both:
            return (
                "stable and unstable features go together otherwise than in training, more likely since the "
                f"{side} ones shifted"
            )
        return f"the {side} features shifted here"
    if best.shares_moved:
        return "no feature is seen to have shifted, but the class shares have moved"
    if best.change.verdict == "cannot tell":
        return "nobody can tell whether a feature shifted here"
    return "no shift of a feature was found here"


def _opposite(names: list[str]) -> str:
    """That features turned round, if any did."""
    if not names:
        return ""
    told = ", ".join(names[:4]) + (" and others" if len(names) > 4 else "")
    return f" {told} {'says' if len(names) == 1 else 'say'} the opposite here of what training said."
