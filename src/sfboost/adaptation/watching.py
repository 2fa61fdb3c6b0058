"""Rows that arrive over time are watched: whether a lot of them speaks unlike all before it.

Watched are the residuals of blind class means, f_S ⊗ (x − Σ_y f_S,y M_y) of each row, where the class means M
of X_U stay those of the first rows. While nothing changes this has some mean, zero or not, and a lot's
difference from the mean of all rows before is independent of the differences of earlier lots (recursive
residuals). So its p-value is valid given the past, as e-values need it. A domain that is unlike others, or a
head that is a little wrong, is one draw, and not new evidence with every batch. Scores of ℓ would do as well,
but they are so skewed that a thousand rows are too few for a normal mean.

References
----------
.. [1] R. L. Brown, J. Durbin and J. M. Evans (1975). Techniques for Testing the Constancy of Regression
   Relationships over Time. Journal of the Royal Statistical Society B 37.
.. [2] V. Vovk and R. Wang (2021). E-values: Calibration, Combination and Applications. Annals of Statistics
   49.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import fdtrc

from sfboost.adaptation.standardize import Standardizer
from sfboost.marginal.probabilities import FloatArray

# A lot is judged when it has so many rows, and so many for each number that is watched. Its mean is about
# normal if there are so many of the rarest class, too; it does not wait for them beyond the last number.
_LEAST_ROWS, _ROWS_PER_NUMBER, _LEAST_OF_CLASS, _MOST_ROWS = 50, 2, 20.0, 2000
# Standard deviations at which a feature is cut off: a mean of what is left is about normal.
_FAR = 3.0
# Of the largest variance: below it a direction does not vary.
_FLAT = 1e-9


@dataclass(frozen=True, eq=False)
class Watch:
    """What is kept of the rows before; nothing of it grows.

    Attributes
    ----------
    standardizer : Standardizer
        Units of X_U.
    half_life : float or None
        Rows after which a row counts half.
    waiting : tuple of pairs of arrays
        f_S and X_U of rows that are too few to be judged.
    class_means : array of shape (K, d), or None
        M, of the first lot.
    mean, cross : arrays of shapes (K · d,) and (K · d, K · d)
        Of what is watched, over the rows before: its mean, and that of its products.
    weight, squares : float
        Sums of the weights of the rows before, and of their squares.
    """

    standardizer: Standardizer
    half_life: float | None = None
    waiting: tuple[tuple[FloatArray, FloatArray], ...] = ()
    class_means: FloatArray | None = None
    mean: FloatArray | None = None
    cross: FloatArray | None = None
    weight: float = 0.0
    squares: float = 0.0

    def lot(self, stable: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """These rows with those that wait."""
        rows = (*self.waiting, (stable, X))
        return np.concatenate([f for f, _ in rows]), np.concatenate([x for _, x in rows])

    def look(self, stable: FloatArray, X: FloatArray) -> tuple[float, Watch]:
        """P-value of the lot that these rows complete, nan if they do not; and the watch after them."""
        f, x = self.lot(stable, X)
        least = max(_LEAST_ROWS, _ROWS_PER_NUMBER * f.shape[1] * x.shape[1])
        if len(f) < least or (len(f) < _MOST_ROWS and f.sum(axis=0).min() < _LEAST_OF_CLASS):
            return float("nan"), replace(self, waiting=((f, x),))
        x = np.clip(self.standardizer.apply(x), -_FAR, _FAR)
        means = self.class_means
        if means is None:
            means = np.linalg.lstsq(f, x, rcond=None)[0]
        watched = (f[:, :, None] * (x - f @ means)[:, None, :]).reshape(len(f), -1)
        p_value = float("nan") if self.mean is None else self._p_value(watched)
        return p_value, replace(self._learn(watched), class_means=means, waiting=())

    def _learn(self, watched: FloatArray) -> Watch:
        keep = 1.0 if self.half_life is None else 2.0 ** (-len(watched) / self.half_life)
        before, weight = keep * self.weight, keep * self.weight + len(watched)
        mean, cross = watched.sum(axis=0), watched.T @ watched
        if self.mean is not None and self.cross is not None:
            mean, cross = mean + before * self.mean, cross + before * self.cross
        squares = keep**2 * self.squares + len(watched)
        return replace(self, mean=mean / weight, cross=cross / weight, weight=weight, squares=squares)

    def _p_value(self, watched: FloatArray) -> float:
        """Hotelling's T² of a lot against the rows before, by the spread of both."""
        assert self.mean is not None
        assert self.cross is not None
        count, before = len(watched), self.weight**2 / self.squares
        mean = watched.mean(axis=0)
        within = watched - mean
        scatter = within.T @ within + before * (self.cross - np.outer(self.mean, self.mean))
        freedom = count + before - 2.0
        values, vectors = np.linalg.eigh(scatter / freedom)
        seen = values > _FLAT * values[-1]
        rank = int(seen.sum())
        if not 0 < rank < freedom:
            return 1.0
        along = (mean - self.mean) @ vectors[:, seen]
        distance = float((along**2 / values[seen]).sum()) / (1.0 / count + 1.0 / before)
        left = freedom - rank + 1.0
        return float(fdtrc(rank, left, distance * left / (rank * freedom)))
