"""How sure is this row? Sets of classes that hold the true one as often as asked, in each domain left out.

Conformal: the threshold is read off rows with labels that the classifier had not seen. Here these are whole
domains, each left out in turn and adapted to blind, so that "had not seen" means what it will mean in a new
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfboost.marginal.probabilities import BoolArray, FloatArray, as_probability_matrix


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """Sets of classes, calibrated on left-out domains.

    A class is in the set of a row if it is no more doubtful there than the true class was in nearly all rows
    with labels.

    Attributes
    ----------
    doubts : dict of arrays
        By left-out domain: one minus the probability that each row's true class got, in order.

    Notes
    -----
    The threshold for a coverage is the largest of those that the left-out domains need, one by one. So the
    sets cover as often as asked in every one of them. A new domain is covered as far as it is no harder
    than the hardest of these: with E domains that could come in any order, with probability E / (E + 1).
    Where probabilities take few values, as with two-valued features, a threshold may fall just short of one
    of them, and the coverage jumps.

    References
    ----------
    .. [1] M. Sadinle, J. Lei and L. Wasserman (2019). Least Ambiguous Set-Valued Classifiers With Bounded
       Error Levels. Journal of the American Statistical Association 114.
    .. [2] R. Dunn, L. Wasserman and A. Ramdas (2023). Distribution-Free Prediction Sets for Two-Layer
       Hierarchical Models. Journal of the American Statistical Association 118.
    """

    doubts: dict[str, FloatArray]

    @classmethod
    def calibrate(cls, proba: Any, y: Any, sample_domain: Any) -> PredictionSets:
        """From probabilities of rows of left-out domains.

        Parameters
        ----------
        proba : array-like of shape (n, K)
        y : integer array-like of shape (n,)
            Class positions 0..K-1.
        sample_domain : array-like of shape (n,)

        Examples
        --------
        >>> sets = PredictionSets.calibrate([[0.9, 0.1], [0.4, 0.6]], [0, 0], ["north", "north"])
        >>> sets.predict_set([[0.7, 0.3], [0.45, 0.55]], coverage=0.5)
        array([[ True, False],
               [ True,  True]])
        """
        given, label, domain = (
            as_probability_matrix(proba, name="proba"),
            np.asarray(y),
            np.asarray(sample_domain),
        )
        if label.shape != (len(given),) or domain.shape != (len(given),):
            raise ValueError(
                f"There are {len(given)} rows of probabilities, labels of shape {label.shape} and domains of "
                f"shape {domain.shape}: pass one of each for every row."
            )
        doubt = 1.0 - given[np.arange(len(given)), label.astype(np.intp)]
        return cls({str(name): np.sort(doubt[domain == name]) for name in dict.fromkeys(domain.tolist())})

    def thresholds(self, coverage: float) -> dict[str, float]:
        """The doubt up to which a class belongs to the set, as each left-out domain needs it."""
        if not isinstance(coverage, (int, float, np.floating)) or not 0.0 < coverage < 1.0:
            raise ValueError(
                f"coverage={coverage} is not a share: use a number between 0 and 1, such as 0.9."
            )
        needed = {}
        for name, doubt in self.doubts.items():
            place = int(np.ceil((len(doubt) + 1) * coverage)) - 1
            # Too few rows for so high a coverage: every class belongs to it.
            needed[name] = float(doubt[place]) if place < len(doubt) else 1.0
        return needed

    def predict_set(self, proba: Any, coverage: float = 0.9) -> BoolArray:
        """Whether each class belongs to the set of each row, of shape (n, K); the likeliest always does."""
        given = as_probability_matrix(proba, name="proba")
        inside = 1.0 - given <= max(self.thresholds(coverage).values()) + 1e-12
        inside[np.arange(len(given)), given.argmax(axis=1)] = True
        return inside
