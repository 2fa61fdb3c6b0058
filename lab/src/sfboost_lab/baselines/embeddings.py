"""SFB on embeddings, where nobody says which columns are stable. No torch needed.

f_S is logistic regression on all columns, as sure of itself as it may be in a domain that it has not seen.
Φ_U is what varies most among the new domain's own rows: its leading principal components.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from sfboost.calibration import fit_temperature
from sfboost_lab.baselines.contract import (
    Floats,
    LabelledRows,
    Method,
    Predictor,
)
from sfboost_lab.baselines.pooled import EstimatorPredictor, as_matrix
from sfboost_lab.baselines.sfb import BoostingAdapter, OtherStable, boost

#: Log-probability of a class that a regression has never seen.
_NEVER = -50.0


@dataclass(frozen=True)
class LeftOutLinear(Method):
    """Logistic regression whose temperature is fitted on training domains that were left out.

    Held-out rows of known domains tell how sure it may be there; in a new domain it errs more. Each training
    domain is predicted by a regression on the others, and one temperature fits all of these predictions.

    Parameters
    ----------
    C : float
        Inverse strength of the penalty, as in scikit-learn.
    max_iter : int

    Examples
    --------
    >>> import numpy as np
    >>> y, domain = np.tile([0, 1, 0, 1], 2), np.repeat(["a", "b"], 4)
    >>> X = np.column_stack([y, np.arange(8.0)])
    >>> LeftOutLinear().fit(LabelledRows(X, y, domain)).predict_proba(X).shape
    (8, 2)
    """

    name: ClassVar[str] = "left-out-linear"
    title: ClassVar[str] = "logistic regression, calibrated on left-out domains"

    C: float = 0.01
    max_iter: int = 1000

    def fit(
        self, train: LabelledRows, *, validation: LabelledRows | None = None, seed: int = 0
    ) -> EstimatorPredictor:
        """Fit on all training domains, and once more without each."""
        domains = np.unique(train.domain)
        if len(domains) < 2:
            raise ValueError(
                f"One training domain ({domains[0]!r}) cannot be left out: pass rows of two or more, or use "
                "the trainer 'pooled'."
            )
        X = np.asarray(as_matrix(train.X))
        classes, y = np.unique(train.y, return_inverse=True)
        fitted = self._regression().fit(X, y)
        temperature = self._temperature(X, y, train.domain, len(classes))
        fitted.coef_, fitted.intercept_ = fitted.coef_ / temperature, fitted.intercept_ / temperature
        return EstimatorPredictor(classes, fitted)

    def _regression(self) -> LogisticRegression:
        return LogisticRegression(C=self.C, max_iter=self.max_iter)

    def _temperature(
        self, X: Floats, y: npt.NDArray[np.intp], domain: npt.NDArray[Any], n_classes: int
    ) -> float:
        """By rows of every domain as the other domains see them; a class that these lack is not judged."""
        log_proba, judged = np.full((len(y), n_classes), _NEVER), np.zeros(len(y), dtype=bool)
        for name in np.unique(domain):
            here = domain == name
            if len(np.unique(y[~here])) < 2:
                continue
            others = self._regression().fit(X[~here], y[~here])
            log_proba[np.ix_(here, others.classes_)] = others.predict_log_proba(X[here])
            judged |= here & np.isin(y, others.classes_)
        if not judged.any():
            return 1.0
        return fit_temperature(log_proba[judged], y[judged], domain=domain[judged]).temperature


class _Rotated(OtherStable):
    """A predictor whose probabilities are f_S, and whose features, seen along some directions, are Φ_U."""

    def __init__(self, predictor: Predictor, directions: PCA) -> None:
        super().__init__(predictor)
        self._directions = directions

    def stable_and_unstable(self, X: Any) -> tuple[Any, Any]:
        """Log f_S and Φ_U."""
        log_proba = np.log(np.maximum(self._predictor.predict_proba(X), 1e-12))
        return log_proba, self._directions.transform(self._predictor.features(X))


@dataclass(frozen=True)
class SFBComponents(BoostingAdapter):
    """SFB with the new domain's own principal components as unstable features (ours).

    What a picture shows varies within the new domain as it does elsewhere, but in other directions; a few of
    these, learned from pseudo-labels, correct a classifier that was trained on other domains. Φ_U and f_S
    read the same columns, so the theory of SFB does not cover it: it is judged by left-out domains.

    Parameters
    ----------
    n_components : int
        How many directions; no more than there are rows or features.
    force : bool
        Adapt even where the check advises against it.

    Examples
    --------
    >>> SFBComponents().title
    'SFB (ours, components)'
    """

    name: ClassVar[str] = "sfb-components"
    title: ClassVar[str] = "SFB (ours, components)"

    n_components: int = 8
    force: bool = False

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Find the directions, and adapt along them."""
        features = predictor.features(X_test)
        directions = PCA(min(self.n_components, *features.shape), random_state=seed).fit(features)
        rotated = _Rotated(predictor, directions)
        return boost(rotated, X_test, refuse=not self.force, random_state=seed)
