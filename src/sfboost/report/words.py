"""Words for facts: what was done, why, and what follows, in sentences that a colleague understands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfboost.boosting import AdaptedClassifier
from sfboost.choice import BestAnswer
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
    kind : {"pooled", "adapted", "blended", "kept stable"}
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
) -> Headline:
    """Put the decision into words; of features it says no more than their own verdicts do."""
    kind = adapted.decision_
    if adapted.best is not None:
        return _best_headline(adapted, adapted.best, changes, meanings)
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


_USE = {
    "pooled": "Use all features as trained",
    "adapted": "Use the adapted answer",
    "blended": "Use the blend",
    "kept stable": "Use the stable features alone",
}
_GIVEN = {
    "pooled": "all features as trained",
    "adapted": "the adapted answer",
    "blended": "a blend",
    "kept stable": "the stable features alone",
}
_PREFERRED = "your own domains prefer this"
_UNTOLD = "nobody can tell whether a meaning changed here"
# No stronger than the evidence: a change is shown, none is, or nobody can tell.
_WHY = {
    "changed": {
        "pooled": "a meaning changed here, but no other answer is better for it",
        "adapted": "a meaning changed here, and it allows for that",
        "blended": "a meaning has probably changed here",
        "kept stable": "a meaning changed here, and nothing better is known",
    },
    "unchanged": {
        "pooled": "nothing changed here",
        "adapted": f"no change is shown here, and {_PREFERRED}",
        "blended": "a change is neither shown nor ruled out here",
        "kept stable": f"no change is shown here, and {_PREFERRED}",
    },
    "cannot tell": {
        "pooled": f"{_UNTOLD}, and nothing speaks for it",
        "adapted": f"{_UNTOLD}, and {_PREFERRED}",
        "blended": f"{_UNTOLD}, but something speaks for it",
        "kept stable": f"{_UNTOLD}, and {_PREFERRED}",
    },
}
_NONE = "on your own domains none was better than a guess"
_HELPLESS = "Label some of these rows (--labels), or add training domains, before you use it."
# A feature of which less than this is left has turned round.
_TURNED = -0.3
_ADVISED = {
    "pooled": "What no test can show: a change that leaves all that the stable features can see as it was.",
    "adapted": "It is right as far as what happened here is like what own domains were put through.",
    "blended": "More rows, more training domains or a few labels would make it clear.",
    "kept stable": "This is the safe answer, not an error. A few labels may change it.",
}


def _best_headline(
    adapted: AdaptedClassifier, best: BestAnswer, changes: Changes, meanings: tuple[FeatureMeaning, ...]
) -> Headline:
    """The headline of answer="best"."""
    kind, change = adapted.decision_, best.change
    use, why = _USE[kind], _WHY[change.verdict][kind]
    if change.verdict == "unchanged" and kind == "pooled" and len(adapted.weights_ or {}) > 1:
        why = "no change is shown here"  # nearly all of a blend, not all
    than = "what the stable features say"
    n_labelled = adapted.adaptation.n_labelled
    if n_labelled:
        labels = f"{n_labelled} label{'s' * (n_labelled > 1)}"
        why = f"{labels} weighed the answers"
        if kind == "kept stable" and isinstance(best.answers.get("stable"), RecalibratedPredictor):
            use = f"Use the stable features, put right by {labels}"
            why, than = "they weighed the answers", f"{than} without them"
    turned = [one.name for one in meanings if one.verdict == "changed" and one.left < _TURNED]
    sentence = f"{use}: {why}.{_opposite(turned) if kind != 'pooled' else ''}"
    count = (
        f"{changes.n_changed} of {changes.n_rows} predicted classes are not {than}."
        if changes.n_changed
        else f"Every predicted class is {than}."
    )
    because, tone = in_words(adapted.reason_), change.verdict if change.verdict == "cannot tell" else ""
    helpless = None if n_labelled else adapted.model.training_.record.helpless
    if helpless is None:
        return Headline(kind, sentence, f"Why: {because}", _ADVISED[kind], count, tone)
    # Not "use it": nobody knows whether it is better than anything.
    sentence = f"No answer can be trusted here: {_NONE}. What you get is {_GIVEN[kind]}."
    return Headline(kind, sentence, f"Why: {helpless}. {because}", _HELPLESS, count, NO_ANSWER)


def _opposite(names: list[str]) -> str:
    """That features turned round, if any did."""
    if not names:
        return ""
    told = ", ".join(names[:4]) + (" and others" if len(names) > 4 else "")
    return f" {told} {'says' if len(names) == 1 else 'say'} the opposite here of what training said."
