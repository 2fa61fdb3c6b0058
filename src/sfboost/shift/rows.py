"""The rows of one domain as the tests and predictors read them: X_S, X_U, and what classifiers say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing

from sfboost.marginal import as_probability_matrix, floored_log
from sfboost.marginal.probabilities import FloatArray, IntArray

#: Log-probabilities of the pooled classifier, given X_S and X_U of some rows.
Pooled = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class DomainData:
    """Stable and unstable parts of the rows of one domain, without labels.

    Attributes
    ----------
    log_stable : array of shape (n, K)
        Log f_S. For a training domain f_S was learned on the others.
    unstable : array of shape (n, d)
        X_U as numbers, raw.
    log_pooled : array of shape (n, K)
        Log-probabilities of one classifier of all features, trained as if nothing changed.
    features : array of shape (n, p)
        X_S as numbers, or the centred log f_S where X_S is not at hand.
    weight : array of shape (n,)
        Row weights that sum to one.
    log_unstable : array of shape (n, K), optional
        What a classifier of X_U alone says.
    log_neutral : array of shape (n, K), optional
        What the pooled classifier says where X_U is what it is on average; log f_S if it is not known.
    ask : callable, optional
        The pooled classifier; None where it cannot be asked about other values (probabilities came as arrays,
        or a pipeline reads text).
    given : array, sparse matrix or frame, optional
        X_U as a head reads it that the user brought along, if that is not `unstable`.
    """

    log_stable: FloatArray
    unstable: FloatArray
    log_pooled: FloatArray
    features: FloatArray
    weight: FloatArray
    log_unstable: FloatArray | None = None
    log_neutral: FloatArray | None = None
    ask: Pooled | None = None
    given: Any = None

    @classmethod
    def of(
        cls,
        stable_proba: Any,
        X_unstable: Any,
        pooled_proba: Any,
        features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Check arrays and put them together.

        Examples
        --------
        >>> DomainData.of([0.2, 0.7], [[1.0], [2.0]], [0.1, 0.9]).log_stable.shape
        (2, 2)
        """
        stable = floored_log(as_probability_matrix(stable_proba))
        pooled = floored_log(as_probability_matrix(pooled_proba, n_classes=stable.shape[1]))
        unstable = np.asarray(X_unstable, dtype=np.float64)
        features = centred(stable) if features is None else np.asarray(features, dtype=np.float64)
        for name, part in (("X_unstable", unstable), ("pooled_proba", pooled), ("features", features)):
            if part.ndim != 2 or len(part) != len(stable):
                raise ValueError(
                    f"{name} has shape {part.shape}, but stable_proba has {len(stable)} rows: pass one row "
                    "of each for every row of the domain."
                )
            if not np.isfinite(part).all():
                raise ValueError(f"{name} holds NaN or infinity: impute or drop those rows first.")
        weight = (
            np.ones(len(stable)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        )
        return cls(stable, unstable, pooled, features, weight / weight.sum())

    @classmethod
    def joined(cls, domains: Sequence[DomainData]) -> Self:
        """All rows of several domains, each domain with its own share of the weight."""
        log_stable, unstable, log_pooled, features = (
            np.concatenate([getattr(data, name) for data in domains])
            for name in ("log_stable", "unstable", "log_pooled", "features")
        )
        shares = shares_of_rows(domains)
        weight = np.concatenate([share * data.weight for share, data in zip(shares, domains, strict=True)])
        neutral = [data.log_neutral for data in domains if data.log_neutral is not None]
        log_neutral = np.concatenate(neutral) if len(neutral) == len(domains) else None
        return cls(log_stable, unstable, log_pooled, features, weight, log_neutral=log_neutral)

    @property
    def evidence(self) -> FloatArray:
        """What the unstable features add to the pooled answer, centred over classes.

        That is log pooled less what pooled says of an average X_U: for a classifier that is linear in log
        space its U-part. Less log f_S would not do: where X_U follows from X_S, pooled believes X_S less
        than f_S does, and that difference hides what X_U says.
        """
        return centred(self.log_pooled - (self.log_stable if self.log_neutral is None else self.log_neutral))

    @property
    def as_given(self) -> Any:
        """X_U as a head reads it."""
        return self.unstable if self.given is None else self.given

    def swapped(self) -> DomainData:
        """The same rows with the two sides exchanged: X_S is what is asked about, by a classifier of X_U."""
        assert self.log_unstable is not None
        ask = self.ask
        return DomainData(
            self.log_unstable,
            self.features,
            self.log_pooled,
            self.unstable,
            self.weight,
            log_unstable=self.log_stable,
            ask=None if ask is None else lambda S, U: ask(U, S),
        )

    def take(self, positions: IntArray) -> Self:
        """Some of the rows."""
        weight, given = self.weight[positions], self.given
        if given is not None:  # scikit-learn takes longer to look at an array than to take rows of it
            plain = isinstance(given, np.ndarray)
            given = given[positions] if plain else _safe_indexing(given, positions)
        return replace(
            self,
            log_stable=self.log_stable[positions],
            unstable=self.unstable[positions],
            log_pooled=self.log_pooled[positions],
            features=self.features[positions],
            weight=weight / weight.sum(),
            log_unstable=None if self.log_unstable is None else self.log_unstable[positions],
            log_neutral=None if self.log_neutral is None else self.log_neutral[positions],
            given=given,
        )

    def paired(self, i: IntArray, k: IntArray) -> Self:
        """X_S of the rows `i` with X_U of the rows `k`, all of equal weight."""
        assert self.ask is not None
        of_k = self.take(k)
        return replace(
            of_k,
            log_stable=self.log_stable[i],
            log_pooled=self.ask(self.features[i], of_k.unstable),
            features=self.features[i],
            weight=np.full(len(i), 1.0 / len(i)),
            log_neutral=None,
        )

    def beside(self, neutral: FloatArray) -> Self:
        """The same rows, their evidence measured by what pooled says of this U; see `evidence`."""
        if self.ask is None:
            return self
        return replace(self, log_neutral=self.ask(self.features, np.tile(neutral, (len(self.weight), 1))))

    def with_unstable(self, unstable: FloatArray) -> Self:
        """The same rows with another X_U."""
        if self.ask is None:
            raise ValueError("The pooled classifier cannot be asked about other values of these features.")
        return replace(self, unstable=unstable, log_pooled=self.ask(self.features, unstable), given=None)


def shares_of_rows(domains: Sequence[DomainData]) -> FloatArray:
    """How many of all rows each domain has; they sum to one."""
    sizes = np.array([len(data.weight) for data in domains], dtype=np.float64)
    return sizes / sizes.sum()


def average_unstable(domains: Sequence[DomainData]) -> FloatArray:
    """X_U of all domains on average, each row with the weight that it has in its domain."""
    return np.asarray(shares_of_rows(domains) @ np.array([data.weight @ data.unstable for data in domains]))


def centred(log_proba: FloatArray) -> FloatArray:
    """Log-probabilities whose mean over classes is zero."""
    return log_proba - log_proba.mean(axis=1, keepdims=True)
