"""Support: rows of the new domain that lie far from where f_S was trained."""

from __future__ import annotations

import numpy as np
from scipy.stats import fisher_exact
from sklearn.neighbors import NearestNeighbors

from sfboost.diagnostics.inputs import Material
from sfboost.diagnostics.result import CheckResult, Verdict
from sfboost.marginal.probabilities import FloatArray

_NEIGHBOUR = 5
_MOST_ROWS = 5000
_FAR = 0.99
# With this share of rows outside, f_S is extrapolating as a rule.
_MANY, _TOO_MANY = 0.05, 0.25


def check_support(material: Material) -> CheckResult:
    """Share of new rows whose distance to training rows (fifth neighbour, X_S) is beyond the 99 % quantile.

    The quantile is that of training rows against the others. X_U is not looked at: it is meant to move.
    """
    training, new = material.labelled, material.fresh
    rng = np.random.default_rng(material.random_state)
    source, fresh = (_some(rows, rng) for rows in (training.features, new.features))
    mean, spread = source.mean(axis=0), source.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    source, fresh = (source - mean) / spread, (fresh - mean) / spread
    search = NearestNeighbors(n_neighbors=_NEIGHBOUR).fit(source)
    inside = search.kneighbors()[0][:, -1]  # leaves the row itself out
    outside = search.kneighbors(fresh)[0][:, -1]
    limit = float(np.quantile(inside, _FAR))
    far, usual = int((outside > limit).sum()), int((inside > limit).sum())
    share = far / len(fresh)
    error = float(np.sqrt(share * (1.0 - share) / len(fresh)))
    table = [[far, len(fresh) - far], [usual, len(source) - usual]]
    p_value = float(fisher_exact(table, alternative="greater").pvalue)
    found = f"{100 * share:.1f} % of the new rows are further from training than 99 % of training rows are."
    if share <= _MANY or p_value >= material.level:
        return CheckResult("support", "holds", found, "", share, error, p_value)
    remedy = "Look at those rows: f_S extrapolates there, and its probabilities are guesses."
    verdict: Verdict = "violated" if share > _TOO_MANY else "doubtful"
    return CheckResult("support", verdict, found, remedy, share, error, p_value)


def _some(X: FloatArray, rng: np.random.Generator) -> FloatArray:
    if len(X) <= _MOST_ROWS:
        return X
    return X[rng.choice(len(X), _MOST_ROWS, replace=False)]
