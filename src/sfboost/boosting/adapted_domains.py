"""`AdaptedDomains`: a fitted model plus what was learned in many new domains at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from sfboost.adaptation import AdaptationRefused, Training
from sfboost.adaptation.checks import check_unstable
from sfboost.adaptation.decision import Amount, refusals
from sfboost.adaptation.settings import ANSWERS
from sfboost.adaptation.standardize import Standardizer
from sfboost.boosting.rows import check_domain
from sfboost.marginal import PseudoLabelStatistics
from sfboost.marginal.probabilities import FloatArray
from sfboost.notices import warn
from sfboost.persistence import Savable
from sfboost.pooling import PooledHeads, fit_pooled_heads

IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True)
class DomainOverview:
    """One of many new domains.

    Attributes
    ----------
    name : str or int
    n_rows : int
    decision : {"adapted", "blended", "kept stable"}
        "blended" says that more of its head comes from other domains than from its own rows.
    shrinkage : float
        How much of its head comes from the other domains: 0 none, 1 all.
    gain : float
        ℓ per row, in nats: how much its unstable features say.
    unusual : float
        How far its head is from the mean of all, in standard deviations between domains.
    shares : tuple of float
        Class shares.
    """

    name: Any
    n_rows: int
    decision: str
    shrinkage: float
    gain: float
    unusual: float
    shares: tuple[float, ...]


class AdaptedDomains(Savable, ClassifierMixin, BaseEstimator):
    """A classifier for many new domains. Made by `adapt(X, sample_domain=...)`; it is never fitted itself.

    Parameters
    ----------
    model : StableFeatureBoosting or SFBClassifier
        The fitted model.
    heads : PooledHeads or None
        None if the stable predictor was kept for all.
    standardizer : Standardizer
        Of the rows of all domains together.
    statistics : PseudoLabelStatistics
        Of the rows of all domains together.
    domains : list
        Names of the domains.
    sizes : list of int
        Rows of each.
    leak : float or None
        δ that the guard allows for; None has no guard.
    reason : str
        Why the stable predictor was kept, if it was.

    Attributes
    ----------
    classes_ : array of shape (K,)
    decision_ : dict
        By domain; see `DomainOverview`.
    """

    def __init__(
        self,
        model: Any,
        heads: PooledHeads | None,
        standardizer: Standardizer,
        statistics: PseudoLabelStatistics,
        domains: list[Any],
        sizes: list[int],
        leak: float | None = None,
        reason: str = "",
    ) -> None:
        self.model = model
        self.heads = heads
        self.standardizer = standardizer
        self.statistics = statistics
        self.domains = domains
        self.sizes = sizes
        self.leak = leak
        self.reason = reason

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, in the order of the columns of `predict_proba`."""
        return np.asarray(self.model.classes_)

    def predict_log_proba(self, X: Any, sample_domain: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        log_stable, unstable = self.model.stable_and_unstable(X)
        if self.heads is None:
            return np.asarray(log_stable)
        names = check_domain(sample_domain, len(log_stable))
        place = {name: i for i, name in enumerate(self.domains)}
        number = np.array([place.get(name, -1) for name in names.tolist()], dtype=np.intp)
        rows = self.standardizer.apply(check_unstable(unstable, n_rows=len(log_stable)))
        return self.heads.predict_log_proba(
            np.exp(log_stable), rows, number, self.leak, self.statistics.confusion
        )

    def predict_proba(self, X: Any, sample_domain: Any) -> FloatArray:
        """Pr[Y | X_S, X_U] in the domain of each row, of shape (n, K).

        A domain that was not adapted to gets the head that is usual among those that were.
        """
        return np.exp(self.predict_log_proba(X, sample_domain))

    def predict(self, X: Any, sample_domain: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        return self.classes_[self.predict_log_proba(X, sample_domain).argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_domain: Any) -> float:
        """Accuracy."""
        return float(np.mean(self.predict(X, sample_domain) == np.asarray(y)))

    def overview(self, by: str = "unusual") -> list[DomainOverview]:
        """One entry for each domain, the largest `by` (an attribute of `DomainOverview`) first."""
        if self.heads is None:
            rows = [
                DomainOverview(name, size, "kept stable", 1.0, 0.0, 0.0, ())
                for name, size in zip(self.domains, self.sizes, strict=True)
            ]
        else:
            rows = self._overview(self.heads)
        return sorted(rows, key=lambda row: getattr(row, by), reverse=True)

    def _overview(self, heads: PooledHeads) -> list[DomainOverview]:
        away = (heads.theta - heads.mean).reshape(len(heads.theta), -1)
        unusual = np.sqrt(np.einsum("dp,pq,dq->d", away, np.linalg.inv(heads.spread), away) / away.shape[1])
        return [
            DomainOverview(
                name,
                self.sizes[i],
                "adapted" if heads.shrinkage[i] < 0.5 else "blended",
                float(heads.shrinkage[i]),
                float(heads.gain[i]),
                float(unusual[i]),
                tuple(heads.shares[i].tolist()),
            )
            for i, name in enumerate(self.domains)
        ]

    @property
    def decision_(self) -> dict[Any, str]:
        """What was done, by domain."""
        return {row.name: row.decision for row in self.overview()}

    def __sklearn_is_fitted__(self) -> bool:
        return True


def adapt_domains(
    model: Any, stable: FloatArray, unstable: Any, sample_domain: Any, training: Training, answer: str
) -> AdaptedDomains:
    """Heads for all domains that `sample_domain` names."""
    if answer not in ANSWERS:
        raise ValueError(f"answer={answer!r} is not known: use one of {list(ANSWERS)}.")
    choices = model._choices(model.settings)
    if choices.head is not None or choices.transport != "posterior":
        raise ValueError(
            'sample_domain needs the default head and transport="posterior": leave `unstable` and `settings` '
            "out, or adapt to one domain at a time."
        )
    names = check_domain(sample_domain, len(stable))
    domains = list(dict.fromkeys(names.tolist()))
    place = {name: i for i, name in enumerate(domains)}
    number = np.array([place[name] for name in names.tolist()], dtype=np.intp)
    X = check_unstable(unstable, n_rows=len(stable))
    X = X.toarray() if hasattr(X, "toarray") else X
    standardizer = Standardizer.fit(X, np.ones(len(X)))
    sizes = np.bincount(number).tolist()
    statistics = PseudoLabelStatistics.from_proba(stable)
    reason = _why_not(Amount(statistics, len(X), X.shape[1], statistics.prior), training, answer)
    heads = None
    if reason:
        warn(
            f"The stable predictor was kept: {reason}. Pass answer='paper' to adapt all the same.",
            AdaptationRefused,
        )
    else:
        known = training.heads_in(standardizer)
        heads = fit_pooled_heads(stable, standardizer.apply(X), number, len(domains), known)
    leak = training.leak if answer == "safe" else None
    return AdaptedDomains(model, heads, standardizer, statistics, domains, sizes, leak, reason)


def _why_not(amount: Amount, training: Training, answer: str) -> str:
    """Why to keep the stable predictor for all domains: their rows together are too few for one head."""
    if answer == "paper":
        return ""
    if doubts := refusals(amount, training.evidence):
        return "; ".join(doubts)
    if answer == "safe" and training.leak is None:
        return f"its leak could not be measured ({training.leak_source}); pass leak=δ if you know a bound"
    return ""
