"""How to adapt: the named methods and what can be changed in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

from sklearn.base import BaseEstimator, clone

from sfboost.adaptation.checks import LARGEST
from sfboost.adaptation.costs import balanced_costs, check_costs
from sfboost.adaptation.scores import Yardstick, check_metric
from sfboost.heads import AdamLogisticRegression, SoftLabelClassifier, SoftLabelMixin, SoftLogisticRegression
from sfboost.marginal import PSEUDO_LABELS
from sfboost.marginal.probabilities import FloatArray

CORRECTIONS = ("likelihood", "posthoc", "none")
LABELLED_RISKS = ("unstable", "joint")
TRANSPORTS = ("posterior", "likelihood")
#: How careful an answer is: refuse and guard, refuse alone, neither.
ANSWERS = ("safe", "checked", "paper")

#: EM rounds for heads that cannot maximise the likelihood directly.
_EM_ROUNDS = 20


class Settings(BaseEstimator):
    """How to adapt: a named method, and changes of single choices of it, where None keeps the method's.

    It has `get_params` and `set_params`: a search over ``settings__l2`` finds it in `StableFeatureBoosting`.

    Parameters
    ----------
    method : {"default", "paper"}
        "paper" is Algorithm 1 (2 for K > 2): soft labels, a few Adam steps, post-hoc correction.
        "default" maximises the likelihood that EM climbs, with an L2 penalty chosen without labels.
    correction : {"likelihood", "posthoc", "none"}
    rounds : int
        Rounds of pseudo-labelling: the first as `correction` says, the others EM.
    head : classifier
        One of `sfboost.heads`, or any scikit-learn classifier or pipeline that takes `sample_weight`.
    l2 : "auto" or float
        Penalty of the default head; "auto" chooses it by cross-fitted likelihood.
    pseudo_labels : {"soft", "hard", "sampled"}
    labelled_risk : {"unstable", "joint"}
        Whether known labels are compared with f_U or with the combination (Eq. 3.2).
    calibrate_unstable : bool
        Temperature-scale the head against its pseudo-labels (off by default, as in the paper).
    standardize : "auto" or bool
        Centre and scale X_unstable with the statistics of the new rows. "auto": yes for our heads; a
        wrapped classifier or pipeline does its own preparation, fitted on these rows too.
    costs : array-like of shape (K, K), optional
        ``costs[y, j]`` of deciding j where the truth is y, classes in order. Own domains then choose among
        answers by what wrong decisions cost there, the guard judges the cost that is saved, and `predict`
        decides by it.
    metric : {"accuracy", "balanced_accuracy", "log_loss", "brier", "auroc", "ece", "cost"}, optional
        By what own domains choose among answers, the guard judges a gain and `evaluate` compares. None is the
        cost where there are costs; else answers are chosen by Brier score, and judged and compared by
        accuracy. With "balanced_accuracy", and no costs, a fitted model also decides by it: a class is as
        dear to miss as it is rare in training.

    Examples
    --------
    >>> Settings(correction="posthoc", l2=0.01)
    Settings(correction='posthoc', l2=0.01)
    """

    def __init__(
        self,
        method: str = "default",
        *,
        correction: str | None = None,
        rounds: int | None = None,
        head: Any = None,
        l2: float | str = "auto",
        pseudo_labels: str | None = None,
        labelled_risk: str | None = None,
        calibrate_unstable: bool | None = None,
        standardize: bool | str = "auto",
        costs: Any = None,
        metric: str | None = None,
    ) -> None:
        self.method = method
        self.correction = correction
        self.rounds = rounds
        self.head = head
        self.l2 = l2
        self.pseudo_labels = pseudo_labels
        self.labelled_risk = labelled_risk
        self.calibrate_unstable = calibrate_unstable
        self.standardize = standardize
        self.costs = costs
        self.metric = metric


@dataclass(frozen=True)
class Choices:
    """Every choice of an adaptation, resolved.

    Attributes
    ----------
    correction : str
        One of `CORRECTIONS`.
    rounds : int or None
        None maximises the likelihood directly; k runs k rounds: one with the correction, then k − 1 of EM.
    head : estimator or None
        None is `SoftLogisticRegression`.
    l2 : float or None
        Penalty of the default head; None chooses it by cross-fitted likelihood.
    pseudo_labels : {"soft", "hard", "sampled"}
    labelled_risk : {"unstable", "joint"}
        What a known label is compared with: f_U, or the combination (Eq. 3.2).
    calibrate_unstable : bool
        Temperature-scale the head against its pseudo-labels ("CU" of the paper).
    transport : {"posterior", "likelihood"}
        What transports: P(Y | X_S), the paper, or P(X_S | Y), label shift.
    standardize : "auto" or bool
    costs : tuple of tuples of float, or None
    metric : str or None
    together : bool
        Whether narrow heads are fitted by Newton's method, those of a cross-fit at once: for play and many
        domains, which fit hundreds. Heads are the same to 1e-6; a cross-fit, which stops early, may choose
        another of two penalties that are as good.
    """

    correction: str = "likelihood"
    rounds: int | None = None
    head: Any = None
    l2: float | None = None
    pseudo_labels: str = "soft"
    labelled_risk: str = "unstable"
    calibrate_unstable: bool = False
    transport: str = "posterior"
    random_state: int = 0
    standardize: bool | str = "auto"
    costs: tuple[tuple[float, ...], ...] | None = None
    metric: str | None = None
    together: bool = False

    def balanced(self, shares: FloatArray | None) -> Choices:
        """The same with the costs that balanced accuracy counts, where that is what counts.

        Likeliest classes would be judged by how often they name a rare one, which who is too sure of it does.
        """
        if self.metric != "balanced_accuracy" or self.costs is not None or shares is None:
            return self
        return replace(self, costs=tuple(map(tuple, balanced_costs(shares).tolist())))

    def yardstick(self, usual: str) -> Yardstick:
        """What answers are judged by; `usual` is the score where neither it nor costs are given."""
        costs = None if self.costs is None else check_costs(self.costs, len(self.costs))
        return Yardstick(self.metric or (usual if costs is None else "cost"), costs)

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
    "default": Choices(),
    "paper": Choices(correction="posthoc", rounds=1, head=AdamLogisticRegression()),
}


def resolve(
    settings: Settings | None = None, *, transport: str = "posterior", random_state: int = 0
) -> Choices:
    """The choices that settings stand for; None in them keeps what the method says."""
    settings = Settings() if settings is None else settings
    if not isinstance(settings, Settings):
        raise TypeError(f"settings={settings!r} is not known: pass sfboost.Settings(...) or None.")
    if settings.method not in METHODS:
        raise ValueError(f"method={settings.method!r} is not known: use one of {sorted(METHODS)}.")
    names = ("correction", "rounds", "head", "pseudo_labels", "labelled_risk", "calibrate_unstable")
    given = {name: getattr(settings, name) for name in names if getattr(settings, name) is not None}
    choices = replace(METHODS[settings.method], **given, transport=transport, random_state=random_state)
    if settings.correction is not None and settings.rounds is None:
        choices = replace(choices, rounds=None)  # another correction has its own number of rounds
    l2: Any = settings.l2
    if l2 != "auto":
        if not isinstance(l2, Real) or not 0.0 < float(l2) <= LARGEST:
            raise ValueError(f'l2={l2!r} is not known: pass "auto" or a positive number up to {LARGEST:g}.')
        if choices.head is not None:
            raise ValueError(f"l2={l2} is for the default head only: give the penalty to `head` itself.")
        choices = replace(choices, l2=float(l2))
    if settings.standardize not in (True, False, "auto"):
        raise ValueError(f'standardize={settings.standardize!r} is not known: use True, False or "auto".')
    choices = replace(choices, standardize=settings.standardize)
    if settings.costs is not None:
        costs = check_costs(settings.costs, len(settings.costs))
        choices = replace(choices, costs=tuple(map(tuple, costs.tolist())))
    if settings.metric is not None:
        choices = replace(choices, metric=check_metric(settings.metric, settings.costs is not None))
    _check_names(choices)
    return _check_consistency(choices)


def _check_names(choices: Choices) -> None:
    for name, value, allowed in (
        ("correction", choices.correction, CORRECTIONS),
        ("pseudo_labels", choices.pseudo_labels, tuple(PSEUDO_LABELS)),
        ("labelled_risk", choices.labelled_risk, LABELLED_RISKS),
        ("transport", choices.transport, TRANSPORTS),
    ):
        if value not in allowed:
            raise ValueError(f"{name}={value!r} is not known: use one of {list(allowed)}.")
    rounds: Any = choices.rounds
    if rounds is not None and not (isinstance(rounds, Integral) and int(rounds) >= 1):
        raise ValueError(f"rounds={rounds} makes no sense: use a whole number from 1 on, or None.")
    if choices.wraps_head and not hasattr(choices.head, "predict_proba"):
        raise ValueError(
            f"The head {type(choices.head).__name__} has no predict_proba: use a classifier that gives "
            "probabilities."
        )


def _check_consistency(choices: Choices) -> Choices:
    ours = isinstance(choices.make_head(None), SoftLogisticRegression)
    if not ours and choices.labelled_risk == "joint":
        raise ValueError('labelled_risk="joint" needs our logistic head: leave `head` unset.')
    if choices.correction == "likelihood" and choices.pseudo_labels != "soft":
        raise ValueError(
            'correction="likelihood" uses the stable probabilities themselves: hard or sampled '
            'pseudo-labels go with "posthoc" or "none".'
        )
    if choices.transport == "likelihood" and choices.correction != "likelihood":
        raise ValueError(
            f'transport="likelihood" needs correction="likelihood", got {choices.correction!r}: the others '
            "estimate the confusion of the pseudo-labels as if P(Y | X_S) were stable."
        )
    if choices.correction == "likelihood" and choices.rounds == 1:
        raise ValueError(
            'correction="likelihood" with rounds=1 would be the post-hoc correction alone: use rounds=2 or '
            'more for EM, None for the direct maximum, or correction="posthoc".'
        )
    if choices.calibrate_unstable and choices.correction == "likelihood":
        raise ValueError(
            'calibrate_unstable goes with "posthoc" or "none", not "likelihood", which fits no head to '
            "pseudo-labels."
        )
    if choices.labelled_risk == "joint" and not choices.direct:
        raise ValueError('labelled_risk="joint" goes with correction="likelihood" and rounds=None.')
    if choices.rounds is None and (choices.correction != "likelihood" or not ours):
        wanted = _EM_ROUNDS if choices.correction == "likelihood" else 1
        choices = replace(choices, rounds=wanted)
    return choices
