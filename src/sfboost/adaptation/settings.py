"""How to adapt: the named methods and what can be changed in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

from sklearn.base import clone

from sfboost.adaptation.checks import LARGEST
from sfboost.heads import AdamLogisticRegression, SoftLabelClassifier, SoftLabelMixin, SoftLogisticRegression
from sfboost.marginal import PSEUDO_LABELS

CORRECTIONS = ("likelihood", "posthoc", "posthoc-repeated", "forward", "backward", "none")
LABELLED_RISKS = ("unstable", "joint")
STABILITIES = ("posterior", "likelihood")
#: What `resolve` takes.
CHOICES = (
    *("method", "correction", "rounds", "head", "l2", "pseudo_labels", "labelled_risk", "calibrate_unstable"),
    *("stability", "random_state"),
)
#: How careful an answer is: refuse and guard, refuse alone, neither.
ANSWERS = ("safe", "checked", "paper")

#: EM rounds for heads that cannot maximise the likelihood directly.
_EM_ROUNDS = 20


@dataclass(frozen=True)
class Settings:
    """Every choice of an adaptation, resolved.

    Attributes
    ----------
    correction : str
        One of `CORRECTIONS`.
    rounds : int or None
        None maximises the likelihood directly; k runs k rounds: one with the correction, then k − 1 of
        EM (for "posthoc-repeated": k corrected ones).
    head : estimator or None
        None is `SoftLogisticRegression`.
    l2 : float or None
        Penalty of the default head; None chooses it by cross-fitted likelihood.
    pseudo_labels : {"soft", "hard", "sampled"}
    labelled_risk : {"unstable", "joint"}
        What a known label is compared with: f_U, or the combination (Eq. 3.2).
    calibrate_unstable : bool
        Temperature-scale the head against its pseudo-labels ("CU" of the paper).
    stability : {"posterior", "likelihood"}
        What transports: P(Y | X_S), the paper, or P(X_S | Y), label shift.
    """

    correction: str = "likelihood"
    rounds: int | None = None
    head: Any = None
    l2: float | None = None
    pseudo_labels: str = "soft"
    labelled_risk: str = "unstable"
    calibrate_unstable: bool = False
    stability: str = "posterior"
    random_state: int = 0

    @property
    def direct(self) -> bool:
        """Whether the likelihood is maximised directly rather than by EM."""
        return self.correction == "likelihood" and self.rounds is None

    @property
    def wraps_head(self) -> bool:
        """Whether the head is a scikit-learn classifier or pipeline that we wrap."""
        return self.head is not None and not isinstance(self.head, SoftLabelMixin)

    def make_head(self, l2: float | None, tol: float = 1e-7) -> SoftLabelMixin:
        """A fresh head; a scikit-learn classifier is wrapped so that it takes soft labels."""
        if self.head is None:
            return SoftLogisticRegression(l2=1e-4 if l2 is None else l2, tol=tol)
        if isinstance(self.head, SoftLabelMixin):
            return clone(self.head)
        return SoftLabelClassifier(clone(self.head))


#: The named methods. "paper" is Algorithm 1/2 with the head of App. E.
METHODS = {
    "default": Settings(),
    "paper": Settings(correction="posthoc", rounds=1, head=AdamLogisticRegression()),
}


def resolve(method: str, l2: Any, **changes: Any) -> Settings:
    """Settings of a named method with the user's changes; None keeps what the method says."""
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not known: use one of {sorted(METHODS)}.")
    settings = replace(METHODS[method], **{k: v for k, v in changes.items() if v is not None})
    if changes.get("correction") is not None and changes.get("rounds") is None:
        settings = replace(settings, rounds=None)  # another correction has its own number of rounds
    if l2 != "auto":
        if not isinstance(l2, Real) or not 0.0 < float(l2) <= LARGEST:
            raise ValueError(f'l2={l2!r} is not known: pass "auto" or a positive number up to {LARGEST:g}.')
        if settings.head is not None:
            raise ValueError(f"l2={l2} is for the default head only: give the penalty to `head` itself.")
        settings = replace(settings, l2=float(l2))
    _check_names(settings)
    return _check_consistency(settings)


def _check_names(settings: Settings) -> None:
    for name, value, allowed in (
        ("correction", settings.correction, CORRECTIONS),
        ("pseudo_labels", settings.pseudo_labels, tuple(PSEUDO_LABELS)),
        ("labelled_risk", settings.labelled_risk, LABELLED_RISKS),
        ("stability", settings.stability, STABILITIES),
    ):
        if value not in allowed:
            raise ValueError(f"{name}={value!r} is not known: use one of {list(allowed)}.")
    rounds: Any = settings.rounds
    if rounds is not None and not (isinstance(rounds, Integral) and int(rounds) >= 1):
        raise ValueError(f"rounds={rounds} makes no sense: use a whole number from 1 on, or None.")
    if settings.wraps_head and not hasattr(settings.head, "predict_proba"):
        raise ValueError(
            f"The head {type(settings.head).__name__} has no predict_proba: use a classifier that gives "
            "probabilities."
        )


def _check_consistency(settings: Settings) -> Settings:
    ours = isinstance(settings.make_head(None), SoftLogisticRegression)
    if not ours and settings.correction == "forward":
        raise ValueError(
            'correction="forward" fits the head through the confusion and needs our logistic head: '
            "leave `head` unset, or use another correction."
        )
    if not ours and settings.labelled_risk == "joint":
        raise ValueError('labelled_risk="joint" needs our logistic head: leave `head` unset.')
    if settings.correction == "likelihood" and settings.pseudo_labels != "soft":
        raise ValueError(
            'correction="likelihood" uses the stable probabilities themselves: hard or sampled '
            'pseudo-labels go with "posthoc", "forward", "backward" or "none".'
        )
    if settings.stability == "likelihood" and settings.correction != "likelihood":
        raise ValueError(
            f'stability="likelihood" needs correction="likelihood", got {settings.correction!r}: the others '
            "estimate the confusion of the pseudo-labels as if P(Y | X_S) were stable."
        )
    if settings.correction == "likelihood" and settings.rounds == 1:
        raise ValueError(
            'correction="likelihood" with rounds=1 would be the post-hoc correction alone: use rounds=2 or '
            'more for EM, None for the direct maximum, or correction="posthoc".'
        )
    if settings.correction == "posthoc-repeated" and settings.pseudo_labels != "soft":
        raise ValueError('correction="posthoc-repeated" takes soft pseudo-labels only.')
    if settings.calibrate_unstable and settings.correction not in ("posthoc", "backward", "none"):
        raise ValueError(
            f'calibrate_unstable goes with "posthoc", "backward" or "none", not {settings.correction!r}: the '
            "others do not fit a head to pseudo-labels."
        )
    if settings.labelled_risk == "joint" and not settings.direct:
        raise ValueError('labelled_risk="joint" goes with correction="likelihood" and rounds=None.')
    if settings.rounds is None and (settings.correction != "likelihood" or not ours):
        wanted = _EM_ROUNDS if settings.correction == "likelihood" else 1
        settings = replace(settings, rounds=wanted)
    return settings
