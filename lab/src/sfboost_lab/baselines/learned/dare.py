"""DARE (Rosenfeld et al., 2022) on frozen features: regress on features that each domain has whitened itself.

This is the label-free form: a new domain is whitened with its own unlabelled rows (the adapter "dare"), and
until then with the mean of the training whitenings. ERM learns the features first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import null_space
from sklearn.linear_model import LogisticRegression

from sfboost_lab.baselines.contract import Floats, LabelledRows, LinearHead, Method, Predictor, TestAccess
from sfboost_lab.baselines.learned.generalisation import ERMTrainer, published
from sfboost_lab.baselines.learned.network import NetworkPredictor


def whitening(features: Floats, shrinkage: float) -> Floats:
    """Return Σ^(−1/2) of the rows, their covariance shrunk towards a multiple of the identity.

    Examples
    --------
    >>> import numpy as np
    >>> whitening(np.array([[-2.0], [2.0]]), 0.0)
    array([[0.5]])
    """
    covariance = np.atleast_2d(np.cov(features, rowvar=False, bias=True))
    level = np.trace(covariance) / len(covariance)
    covariance = (1 - shrinkage) * covariance + shrinkage * level * np.eye(len(covariance))
    values, vectors = np.linalg.eigh(covariance)
    # Directions without variance carry nothing: they are dropped rather than blown up.
    kept = values > 1e-10 * max(values.max(), 1e-300)
    roots = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return (vectors * roots) @ vectors.T


def adjusted_regression(
    features: Floats, y: npt.NDArray[np.intp], domain: npt.NDArray[Any], *, l2: float, shrinkage: float
) -> tuple[Floats, Floats]:
    """Return B (K, d) and the mean whitening of the training domains.

    B minimises the mean cross-entropy of B W_e x (+ l2/2 · ‖B‖²) where every domain's mean row is predicted
    as uniform. With logits that sum to zero that is B W_e μ_e = 0, so B is sought in the complement of the
    whitened means: a plain regression in fewer dimensions.
    """
    names = np.unique(domain)
    maps = [whitening(features[domain == name], shrinkage) for name in names]
    means = np.array([maps[e] @ features[domain == name].mean(axis=0) for e, name in enumerate(names)])
    free = null_space(means, rcond=1e-9)
    if free.shape[1] == 0:
        raise ValueError(
            f"DARE asks that the mean row of each of {len(names)} domains be predicted as uniform, which "
            f"leaves nothing of {features.shape[1]} features. Use wider features, or fewer domains."
        )
    white = np.empty_like(features)
    for e, name in enumerate(names):
        white[domain == name] = features[domain == name] @ maps[e]
    weight = np.array([1.0 / np.mean(domain == name) for name in names])[np.searchsorted(names, domain)]
    model = LogisticRegression(C=1 / (l2 * weight.sum()), fit_intercept=False, max_iter=2000, tol=1e-8)
    model.fit(white @ free, y, sample_weight=weight)
    return LinearHead.of(model.coef_ @ free.T, np.zeros(len(model.coef_))).coef, np.mean(maps, axis=0)


@dataclass(frozen=True, eq=False)
class DAREPredictor(NetworkPredictor):
    """A network, and the regression B on its whitened features."""

    regression: Floats
    shrinkage: float


@dataclass(frozen=True)
class DARE(ERMTrainer):
    """Features by ERM, or the rows themselves (network="linear", steps=0); then the adjusted regression.

    Parameters
    ----------
    regression_l2 : float
        Penalty of the regression per row.
    shrinkage : float
        Of the covariances, towards a multiple of the identity.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y, d = np.arange(200) % 2, np.arange(200) // 100
    >>> rows = LabelledRows(rng.normal(size=(200, 5)) + 3 * (y - 0.5)[:, None], y, d)
    >>> bool(np.mean(DARE(network="linear", steps=0).fit(rows).predict(rows.X) == y) > 0.9)
    True
    """

    name: ClassVar[str] = "dare"
    title: ClassVar[str] = "DARE (frozen features)"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published({"cosine": False}, pacs={"steps": 0})

    regression_l2: float = 1e-3
    shrinkage: float = 1e-3

    def finish(self, trained: NetworkPredictor, train: LabelledRows) -> DAREPredictor:
        """Regress on the features."""
        y = np.searchsorted(trained.classes_, train.y)
        B, mean_map = adjusted_regression(
            trained.features(train.X), y, train.domain, l2=self.regression_l2, shrinkage=self.shrinkage
        )
        head = LinearHead(B @ mean_map, np.zeros(len(B)))
        return DAREPredictor(trained.classes_, trained.body, head, B, self.shrinkage)


@dataclass(frozen=True)
class DAREWhitening(Method):
    """Whiten the test domain with its own unlabelled rows. Needs a predictor of the trainer "dare".

    Examples
    --------
    >>> DAREWhitening().test_access
    'unlabelled'
    """

    name: ClassVar[str] = "dare"
    title: ClassVar[str] = "test whitening"
    test_access: ClassVar[TestAccess] = "unlabelled"
    head_only: ClassVar[bool] = False

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Replace the mean whitening of the training domains by that of the test domain."""
        B = getattr(predictor, "regression", None)
        if B is None:
            raise ValueError(
                f"Test whitening belongs to DARE; this predictor ({type(predictor).__name__}) has no "
                "regression on whitened features. Use the trainer 'dare'."
            )
        shrinkage = float(predictor.shrinkage)  # type: ignore[attr-defined]
        coef = B @ whitening(predictor.features(X_test), shrinkage)
        body = predictor.body  # type: ignore[attr-defined]
        return DAREPredictor(predictor.classes_, body, LinearHead(coef, np.zeros(len(coef))), B, shrinkage)
