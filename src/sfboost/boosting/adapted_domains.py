"""`AdaptedDomains`: a fitted model plus what was learned in many new domains at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin

from sfboost.adaptation.checks import check_unstable
from sfboost.adaptation.costs import decided
from sfboost.adaptation.standardize import Standardizer
from sfboost.answers.choosing import WORDS
from sfboost.answers.many import ManyAnswers
from sfboost.change import Change
from sfboost.diagnostics.by_domain import check_domain
from sfboost.marginal import PseudoLabelStatistics
from sfboost.marginal.probabilities import FloatArray
from sfboost.persistence import Savable
from sfboost.pooling import PooledHeads

Value = TypeVar("Value")


@dataclass(frozen=True)
class DomainOverview:
    """One of many new domains.

    Attributes
    ----------
    name : str or int
    n_rows : int
    decision : {"pooled", "adapted", "blended", "kept stable"}
        With answer="best" as in `AdaptedClassifier`; else "blended" says that more of its head comes from
        other domains than from its own rows.
    shrinkage : float
        How much of its head comes from the other domains: 0 none, 1 all.
    gain : float
        ℓ per row, in nats: how much its unstable features say.
    unusual : float
        How far its head is from the mean of all, in standard deviations between domains. With answer="best"
        how unlike those of the own domains its unstable features speak, in standard deviations.
    shares : tuple of float
        Class shares.
    verdict : {"changed", "unchanged", "cannot tell", ""}
        Of the change test, with the rate of false discoveries held over all domains; answer="best" only.
    p_value, adjusted : float
        Of that test, by itself and among all domains.
    chance : float
        Probability of a change, given all domains; by this answers are weighed. NaN below twenty domains.
    """

    name: Any
    n_rows: int
    decision: str
    shrinkage: float
    gain: float
    unusual: float
    shares: tuple[float, ...]
    verdict: str = ""
    p_value: float = float("nan")
    adjusted: float = float("nan")
    chance: float = float("nan")


class ByDomain(Mapping[Any, Value], Generic[Value]):
    """What is known of each domain, worked out when it is asked for."""

    def __init__(self, domains: list[Any], find: Callable[[int], Value]) -> None:
        self._numbers = {name: number for number, name in enumerate(domains)}
        self._find = find

    def __getitem__(self, name: Any) -> Value:
        return self._find(self._numbers[name])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


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
        Why heads were not learned, if they were not, or what else is to be said.
    best : ManyAnswers or None
        What was chosen for each domain, with answer="best".

    Attributes
    ----------
    classes_ : array of shape (K,)
    decision_ : dict
        By domain; see `DomainOverview`.
    reasons_ : mapping
        By domain: why, in one sentence; worked out when it is asked for.
    changes_ : mapping or None
        By domain: whether a meaning changed, and whose. This and what follows with answer="best" only.
    weights_ : mapping or None
        By domain: weights of the candidate answers.
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
        best: ManyAnswers | None = None,
    ) -> None:
        self.model = model
        self.heads = heads
        self.standardizer = standardizer
        self.statistics = statistics
        self.domains = domains
        self.sizes = sizes
        self.leak = leak
        self.reason = reason
        self.best = best

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, in the order of the columns of `predict_proba`."""
        return np.asarray(self.model.classes_)

    def predict_log_proba(self, X: Any, sample_domain: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        parts = self.model._read(X)
        log_stable, unstable = parts.log_stable, parts.unstable
        place = {name: i for i, name in enumerate(self.domains)}
        names = check_domain(sample_domain, len(log_stable))
        number = np.array([place.get(name, -1) for name in names.tolist()], dtype=np.intp)

        def by_heads() -> FloatArray:
            if self.heads is None:
                return np.asarray(log_stable)
            rows = self.standardizer.apply(check_unstable(unstable, n_rows=len(log_stable)))
            return self.heads.predict_log_proba(
                np.exp(log_stable), rows, number, self.leak, self.statistics.confusion
            )

        if self.best is None:
            return by_heads()
        rows = self.model.answer_rows(X, None, parts)
        if rows is None:
            raise ValueError("These rows hold what is no finite number: impute or drop those cells first.")
        # Said once, so that rows of a domain are found among all without counting all of them again.
        rows = replace(rows, positions=np.arange(len(number)))
        return self.best.log_proba(rows, number, by_heads)

    def predict_proba(self, X: Any, sample_domain: Any) -> FloatArray:
        """Pr[Y | X_S, X_U] in the domain of each row, of shape (n, K).

        A domain that was not adapted to gets the head that is usual among those that were; with
        answer="best", what did best on the own domains.
        """
        return np.exp(self.predict_log_proba(X, sample_domain))

    def predict(self, X: Any, sample_domain: Any) -> npt.NDArray[Any]:
        """The most probable class of each row, or the cheapest if the model's settings have costs."""
        return self.classes_[decided(self.predict_proba(X, sample_domain), self.model._costs())]

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
        if self.best is not None:
            found = self.best.changes
            columns = {
                "decision": self.best.decisions[:-1],
                "unusual": norm.isf(np.clip(found.p_value, 1e-300, 0.5)).tolist(),
                "verdict": found.verdicts.tolist(),
                "p_value": found.p_value.tolist(),
                "adjusted": found.adjusted.tolist(),
            }
            if found.chances is not None:
                columns["chance"] = found.chances.chance.tolist()
            rows = [
                replace(row, **dict(zip(columns, values, strict=True)))
                for row, *values in zip(rows, *columns.values(), strict=True)
            ]
        return sorted(rows, key=lambda row: getattr(row, by), reverse=True)

    def _overview(self, heads: PooledHeads) -> list[DomainOverview]:
        away = (heads.theta - heads.mean).reshape(len(heads.theta), -1)
        unusual = np.sqrt(np.einsum("dp,pq,dq->d", away, np.linalg.inv(heads.spread), away) / away.shape[1])
        shrinkage = heads.shrinkage.tolist()  # of all domains at once
        return [
            DomainOverview(
                name,
                self.sizes[i],
                "adapted" if shrinkage[i] < 0.5 else "blended",
                shrinkage[i],
                float(heads.gain[i]),
                float(unusual[i]),
                tuple(heads.shares[i].tolist()),
            )
            for i, name in enumerate(self.domains)
        ]

    @property
    def decision_(self) -> dict[Any, str]:
        """What was done, by domain."""
        found = {row.name: row.decision for row in self.overview()}
        return {name: found[name] for name in self.domains}

    @property
    def reasons_(self) -> Mapping[Any, str]:
        """Why, by domain."""
        best, heads = self.best, self.heads
        if best is not None:
            experience = self.model.training_.experience
            return ByDomain(self.domains, lambda number: best.choice(number, experience).reason)
        if heads is None:
            return ByDomain(self.domains, lambda _: f"The stable predictor was kept: {self.reason}")
        note, shrinkage = f". {self.reason}" if self.reason else "", heads.shrinkage
        return ByDomain(
            self.domains,
            lambda i: f"{100 * shrinkage[i]:.0f} % of its head comes from the other domains{note}",
        )

    @property
    def changes_(self) -> Mapping[Any, Change] | None:
        """Whether a meaning changed, and whose, by domain; answer="best" only."""
        if (best := self.best) is None:
            return None
        experience = self.model.training_.experience
        return ByDomain(self.domains, lambda number: best.change(number, experience))

    @property
    def weights_(self) -> Mapping[Any, dict[str, float]] | None:
        """Weights of the candidate answers, by domain; answer="best" only."""
        if (best := self.best) is None:
            return None

        def weights(number: int) -> dict[str, float]:
            row = zip(WORDS, best.weights[number].tolist(), strict=True)
            return {name: weight for name, weight in row if weight > 0.0}

        return ByDomain(self.domains, weights)

    def __sklearn_is_fitted__(self) -> bool:
        return True
