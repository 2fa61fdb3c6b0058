"""How to adapt: the named methods and what can be changed in them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
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
TRANSPORTS = ("posterior", "likelihood")

#: What a named method says where nothing else is asked for; "paper" is Algorithm 1/2 with the head of App. E.
METHODS: dict[str, dict[str, Any]] = {
    "default": {"correction": "likelihood"},
    "paper": {"correction": "posthoc", "rounds": 1, "head": AdamLogisticRegression()},
}
# What holds for every method.
_USUAL: dict[str, Any] = {
    "pseudo_labels": "soft",
    "calibrate_unstable": False,
    "transport": "posterior",
    "random_state": 0,
}
#: EM rounds for heads that cannot maximise the likelihood directly.
_EM_ROUNDS = 20


@dataclass(eq=False, repr=False)
class Settings(BaseEstimator):
    """How to adapt: a named method, and changes of single choices of it, where None keeps the method's.

    It has `get_params` and `set_params`: a search over ``settings__l2`` finds it in `StableFeatureBoosting`.

    Parameters
    ----------
    method : {"default", "paper"}
        "paper" is Algorithm 1 (2 for K > 2): soft labels, some passes of Adam, post-hoc correction. `adapt`
        then gives its answer, whatever the rows are, and asks nothing else.
        "default" maximises the likelihood that EM climbs, with an L2 penalty chosen without labels.
    correction : {"likelihood", "posthoc", "none"}
    rounds : int
        Rounds of pseudo-labelling: the first as `correction` says, the others EM. None maximises the
        likelihood directly, where that is the correction and the head is ours.
    head : classifier
        One of `sfboost.heads`, or any scikit-learn classifier or pipeline that takes `sample_weight`.
    l2 : "auto" or float
        Penalty of the default head; "auto" chooses it by cross-fitted likelihood.
    pseudo_labels : {"soft", "hard", "sampled"}
    calibrate_unstable : bool
        Temperature-scale the head against its pseudo-labels ("CU"; off by default, as in the paper).
    standardize : "auto" or bool
        Centre and scale X_unstable with the statistics of the new rows. "auto": yes for our heads; a
        wrapped classifier or pipeline does its own preparation, fitted on these rows too.
    costs : array-like of shape (K, K), optional
        ``costs[y, j]`` of deciding j where the truth is y, classes in order: `predict` decides by it.
    metric : {"accuracy", "balanced_accuracy", "log_loss", "brier", "auroc", "ece", "cost"}, optional
        By what a safe answer judges its gain and `evaluate` compares. None is the cost where there are
        costs, else accuracy. With "balanced_accuracy", and no costs, a fitted model also decides by it: a
        class is as dear to miss as it is rare in training.
    transport : {"posterior", "likelihood"}
        What transports: P(Y | X_S), the paper, or P(X_S | Y), label shift. None: as the estimator says.
    random_state : int
        None: as whoever adapts says.

    Examples
    --------
    >>> Settings(correction="posthoc", l2=0.01)
    Settings(correction='posthoc', l2=0.01)
    """

    method: str = "default"
    _: KW_ONLY
    correction: Any = None
    rounds: Any = None
    head: Any = None
    l2: Any = "auto"
    pseudo_labels: Any = None
    calibrate_unstable: Any = None
    standardize: Any = "auto"
    costs: Any = None
    metric: str | None = None
    transport: Any = None
    random_state: Any = None

    def resolved(self, **usual: Any) -> Settings:
        """The same with every choice made, and checked; `usual` is what holds where nothing is said."""
        if self.method not in METHODS:
            raise ValueError(f"method={self.method!r} is not known: use one of {sorted(METHODS)}.")
        said = METHODS[self.method]
        if self.correction is not None:  # another correction has its own number of rounds
            said = {**said, "rounds": self.rounds}
        every = {**_USUAL, **usual, **said}
        full = replace(self, **{name: value for name, value in every.items() if getattr(self, name) is None})
        full._check_numbers()
        full._check_names()
        full._check_consistency()
        if full.rounds is None and not (
            full.direct and isinstance(full.make_head(None), SoftLogisticRegression)
        ):
            full.rounds = _EM_ROUNDS if full.correction == "likelihood" else 1
        return full

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

    def balanced(self, shares: FloatArray | None) -> Settings:
        """The same with the costs that balanced accuracy counts, where that is what counts.

        Likeliest classes would be judged by how often they name a rare one, which who is too sure of it does.
        """
        if self.metric != "balanced_accuracy" or self.costs is not None or shares is None:
            return self
        return replace(self, costs=balanced_costs(shares).tolist())

    def yardstick(self, usual: str) -> Yardstick:
        """What answers are judged by; `usual` is the score where neither it nor costs are given."""
        costs = None if self.costs is None else check_costs(self.costs, len(self.costs))
        return Yardstick(self.metric or (usual if costs is None else "cost"), costs)

    def _check_numbers(self) -> None:
        if self.l2 != "auto":
            if not isinstance(self.l2, Real) or not 0.0 < float(self.l2) <= LARGEST:
                raise ValueError(
                    f'l2={self.l2!r} is not known: pass "auto" or a positive number up to {LARGEST:g}.'
                )
            if self.head is not None:
                raise ValueError(
                    f"l2={self.l2} is for the default head only: give the penalty to `head` itself."
                )
        if self.rounds is not None and not (isinstance(self.rounds, Integral) and int(self.rounds) >= 1):
            raise ValueError(f"rounds={self.rounds} makes no sense: use a whole number from 1 on, or None.")
        if self.costs is not None:
            check_costs(self.costs, len(self.costs))
        if self.metric is not None:
            check_metric(self.metric, self.costs is not None)

    def _check_names(self) -> None:
        if self.standardize not in (True, False, "auto"):
            raise ValueError(f'standardize={self.standardize!r} is not known: use True, False or "auto".')
        for name, allowed in (
            ("correction", CORRECTIONS),
            ("pseudo_labels", tuple(PSEUDO_LABELS)),
            ("transport", TRANSPORTS),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name}={value!r} is not known: use one of {list(allowed)}.")
        if self.wraps_head and not hasattr(self.head, "predict_proba"):
            raise ValueError(
                f"The head {type(self.head).__name__} has no predict_proba: use a classifier that gives "
                "probabilities."
            )

    def _check_consistency(self) -> None:
        if self.transport == "likelihood" and self.correction != "likelihood":
            raise ValueError(
                f'transport="likelihood" needs correction="likelihood", got {self.correction!r}: the others '
                "estimate the confusion of the pseudo-labels as if P(Y | X_S) were stable."
            )
        if self.correction != "likelihood":
            return
        if self.pseudo_labels != "soft":
            raise ValueError(
                'correction="likelihood" uses the stable probabilities themselves: hard or sampled '
                'pseudo-labels go with "posthoc" or "none".'
            )
        if self.rounds == 1:
            raise ValueError(
                'correction="likelihood" with rounds=1 would be the post-hoc correction alone: use rounds=2 '
                'or more for EM, None for the direct maximum, or correction="posthoc".'
            )
        if self.calibrate_unstable:
            raise ValueError(
                'calibrate_unstable goes with "posthoc" or "none", not "likelihood", which fits no head to '
                "pseudo-labels."
            )


def resolve(settings: Settings | None = None, **usual: Any) -> Settings:
    """What a user passes as settings, with every choice made."""
    if settings is not None and not isinstance(settings, Settings):
        raise TypeError(f"settings={settings!r} is not known: pass sfboost.Settings(...) or None.")
    return (settings or Settings()).resolved(**usual)
