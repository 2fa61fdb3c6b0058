"""Several new domains: an adapted classifier for each, and what all of them together say of a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy.stats import false_discovery_control
from sklearn.utils import _safe_indexing

from sfboost.adaptation.decision import unwarned
from sfboost.boosting.adapted import AdaptedClassifier
from sfboost.diagnostics.rows import check_domain, rows_by_domain
from sfboost.frames import EncodingWarning
from sfboost.marginal.probabilities import FloatArray, IntArray
from sfboost.notices import first_names
from sfboost.shift.testing import LEAST_POWER

_UNKNOWN = float("nan")


@dataclass(frozen=True)
class DomainOverview:
    """One of several new domains.

    Attributes
    ----------
    name : str or int
    n_rows : int
    decision, reason : str
        Of its `AdaptedClassifier`; the reason also says where a change is no discovery among all domains.
    shares : tuple of float
        Class shares.
    verdict : {"changed", "unchanged", "cannot tell", ""}
        Of the change test, with the rate of false discoveries held over all domains; empty without a test.
    p_value, adjusted : float
        Of that test, by itself and among all domains.
    """

    name: Any
    n_rows: int
    decision: str
    reason: str
    shares: tuple[float, ...]
    verdict: str = ""
    p_value: float = _UNKNOWN
    adjusted: float = _UNKNOWN


class AdaptedDomains(Mapping[Any, AdaptedClassifier]):
    """An `AdaptedClassifier` for each of several new domains, by name. Made by `adapt(X, sample_domain=...)`.

    Each is adapted by itself, so that ``many["north"]`` says, explains and saves what any other does.

    Parameters
    ----------
    model : StableFeatureBoosting or SFBClassifier
        The fitted model.
    adapted : dict of AdaptedClassifier
        By domain.
    sizes : dict of int
        Rows of each domain.

    Attributes
    ----------
    classes_ : array of shape (K,)
    """

    def __init__(self, model: Any, adapted: dict[Any, AdaptedClassifier], sizes: dict[Any, int]) -> None:
        self.model = model
        self.classes_: npt.NDArray[Any] = model.classes_
        self._adapted, self._sizes = adapted, sizes

    def __getitem__(self, name: Any) -> AdaptedClassifier:
        return self._adapted[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._adapted)

    def __len__(self) -> int:
        return len(self._adapted)

    def predict_log_proba(self, X: Any, sample_domain: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        return self._asked("predict_log_proba", X, sample_domain)

    def predict_proba(self, X: Any, sample_domain: Any) -> FloatArray:
        """Pr[Y | X_S, X_U] in the domain of each row, of shape (n, K)."""
        return self._asked("predict_proba", X, sample_domain)

    def predict(self, X: Any, sample_domain: Any) -> npt.NDArray[Any]:
        """The most probable class of each row, or the cheapest if the model's settings have costs."""
        return self._asked("predict", X, sample_domain)

    def score(self, X: Any, y: Any, sample_domain: Any) -> float:
        """Accuracy."""
        return float(np.mean(self.predict(X, sample_domain) == np.asarray(y)))

    def _asked(self, method: str, X: Any, sample_domain: Any) -> npt.NDArray[Any]:
        """What each domain's classifier says of its rows, in the order of the rows."""
        X = X if hasattr(X, "shape") else np.asarray(X)
        parts = rows_by_domain(check_domain(sample_domain, X.shape[0]))
        if unknown := [name for name, _ in parts if name not in self._adapted]:
            raise ValueError(
                f"Nothing was adapted to {first_names(map(repr, unknown))}: pass rows of "
                f"{first_names(map(repr, self))}, or adapt to the others as well."
            )
        self.model._tell_filled(X)
        with unwarned(EncodingWarning):  # told once of all rows
            said = [getattr(self[name], method)(_safe_indexing(X, rows)) for name, rows in parts]
        order = np.concatenate([rows for _, rows in parts])
        return np.concatenate(said)[np.argsort(order)]

    def overview(self) -> list[DomainOverview]:
        """One entry for each domain, the least likely to be as ever first.

        Of those that it calls changed at most one in twenty is expected not to be: p-values are adjusted as
        Benjamini and Hochberg do. (The tests share the source domains that they compare with and so
        lean to the same side, which the procedure allows.)
        """
        tested = [name for name, one in self.items() if one.shift_ is not None]
        p_values = [self[name].shift_.unstable.p_value for name in tested]  # type: ignore[union-attr]
        adjusted = false_discovery_control(p_values) if tested else np.empty(0)
        known = dict(zip(tested, adjusted.tolist(), strict=True))
        rows = [self._overview(name, known.get(name, _UNKNOWN)) for name in self]
        return sorted(rows, key=lambda row: row.p_value) if tested else rows

    def _overview(self, name: Any, adjusted: float) -> DomainOverview:
        one = self[name]
        shared = (name, self._sizes[name], one.decision_)
        shares, reason = tuple(one.prior_.tolist()), str(one.reason_)
        if one.shift_ is None:
            return DomainOverview(*shared, reason, shares)
        change = one.shift_.unstable
        verdict = change.verdict
        if verdict == "changed" and adjusted >= change.level:
            verdict = "unchanged" if change.power >= LEAST_POWER else "cannot tell"
            reason += f" Among {len(self)} domains that is no discovery (adjusted p = {adjusted:.2f})."
        return DomainOverview(*shared, reason, shares, verdict, change.p_value, adjusted)


def adapt_each(
    model: Any, X: Any, y: Any, sample_weight: Any, sample_domain: Any, **how: Any
) -> AdaptedDomains:
    """Adapt to each domain that `sample_domain` names, by itself; see `AdaptableClassifier.adapt`."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    parts = rows_by_domain(check_domain(sample_domain, X.shape[0]))

    model._tell_filled(X)
    made = Parallel(n_jobs=getattr(model, "n_jobs", None))(
        delayed(_adapted_to)(model, *_own(rows, X, y, sample_weight), **how) for _, rows in parts
    )
    names = [name for name, _ in parts]
    sizes = [len(rows) for _, rows in parts]
    return AdaptedDomains(model, dict(zip(names, made, strict=True)), dict(zip(names, sizes, strict=True)))


def _own(rows: IntArray, *parts: Any) -> list[Any]:
    """The rows of one domain. A single row is no domain: as two it is one of which nothing can be told."""
    rows = np.repeat(rows, 2) if len(rows) == 1 else rows
    return [None if part is None else _safe_indexing(part, rows) for part in parts]


def _adapted_to(model: Any, X: Any, y: Any, sample_weight: Any, **how: Any) -> AdaptedClassifier:
    with unwarned(EncodingWarning):  # told once of all rows; decisions are in the overview
        adapted: AdaptedClassifier = model.adapt(X, y, sample_weight, **how)
    adapted.answers_ = (
        None  # of very many domains, what every candidate says of every row would fill the memory
    )
    return adapted
