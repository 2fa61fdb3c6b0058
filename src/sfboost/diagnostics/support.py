"""Support: is the new domain where the training rows were? Asked of a sketch, which keeps no training row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import fisher_exact
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from sfboost.diagnostics.inputs import CheckInputs
from sfboost.diagnostics.result import CheckResult, Verdict
from sfboost.marginal.probabilities import FloatArray

_FAR = 0.99
_MOST_CENTRES, _ROWS_PER_CENTRE = 64, 20
_MOST_ROWS = 20_000
# With this share of rows outside, f_S is extrapolating as a rule.
_MANY, _TOO_MANY = 0.05, 0.25


@dataclass(frozen=True, eq=False)
class SupportSketch:
    """Where the stable features of the training rows lie: centres of clusters, and how far a row may be.

    Attributes
    ----------
    mean, spread : arrays of shape (d,)
    centres : array of shape (k, d)
        Of standardised features; each stands for about twenty rows or more.
    limit : float
        99 % of the training rows are nearer to a centre than this.
    n_rows : int
    """

    mean: FloatArray
    spread: FloatArray
    centres: FloatArray
    limit: float
    n_rows: int

    @classmethod
    def fit(cls, X: FloatArray, seed: int = 0) -> Self:
        """Sketch the rows of X."""
        rng = np.random.default_rng(seed)
        rows = X if len(X) <= _MOST_ROWS else X[rng.choice(len(X), _MOST_ROWS, replace=False)]
        mean, spread = rows.mean(axis=0), rows.std(axis=0)
        spread = np.where(spread > 0.0, spread, 1.0)
        Z = (rows - mean) / spread
        # Equal rows make equal centres, of which one is enough.
        count = min(_MOST_CENTRES, max(1, len(Z) // _ROWS_PER_CENTRE), len(np.unique(Z, axis=0)))
        with threadpool_limits(1):
            centres = KMeans(count, n_init=1, random_state=seed).fit(Z).cluster_centers_
        sketch = cls(mean, spread, centres, 0.0, len(X))
        return cls(mean, spread, centres, float(np.quantile(sketch.distance(rows), _FAR)), len(X))

    def distance(self, X: FloatArray) -> FloatArray:
        """Distance of each row to the nearest centre."""
        nearest = np.full(len(X), np.inf)
        Z = (X - self.mean) / self.spread
        for centre in self.centres:
            np.minimum(nearest, ((Z - centre) ** 2).sum(axis=1), out=nearest)
        return np.sqrt(nearest)

    def check(self, X: FloatArray, level: float = 0.05) -> CheckResult:
        """Share of rows further away than 99 % of the training rows are.

        X_U is not looked at: it is meant to move.
        """
        far = int((self.distance(X) > self.limit * (1.0 + 1e-9)).sum())
        share = far / len(X)
        error = float(np.sqrt(share * (1.0 - share) / len(X)))
        usual = round((1.0 - _FAR) * self.n_rows)
        table = [[far, len(X) - far], [usual, self.n_rows - usual]]
        p_value = float(fisher_exact(table, alternative="greater").pvalue)
        found = (
            f"{100 * share:.1f} % of the new rows are further from training (in the stable features) than "
            "99 % of training rows are."
        )
        if share <= _MANY or p_value >= level:
            return CheckResult("support", "holds", found, "", share, error, p_value)
        remedy = (
            "Look at those rows: the stable predictor extrapolates there, and its probabilities are guesses."
        )
        verdict: Verdict = "violated" if share > _TOO_MANY else "doubtful"
        return CheckResult("support", verdict, found, remedy, share, error, p_value)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in ("mean", "spread", "centres")}
        return arrays | {"limit": self.limit, "n_rows": self.n_rows}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        mean, spread, centres = (
            np.asarray(values[name], dtype=np.float64) for name in ("mean", "spread", "centres")
        )
        return cls(mean, spread, centres, values["limit"], values["n_rows"])


def check_support(inputs: CheckInputs) -> CheckResult:
    """Sketch the training rows and look at the new ones."""
    sketch = SupportSketch.fit(inputs.labelled.features, inputs.random_state)
    return sketch.check(inputs.fresh.features, inputs.level)
