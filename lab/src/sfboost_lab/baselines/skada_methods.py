"""Label-free adapters of skada, for comparison (the ``compare`` extra).

Importing skada switches scikit-learn's metadata routing on for the whole program; here that stays inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sfboost_lab.baselines.contract import Floats, LabelledRows, LinearHead, Method, TestAccess
from sfboost_lab.baselines.pooled import as_matrix

METHODS = (
    "CORAL",
    "SubspaceAlignment",
    "LinearOTMapping",
    "OTMapping",
    "DensityReweight",
    "DiscriminatorReweight",
    "GaussianReweight",
    "KMMReweight",
)
"""What may be asked for; each is ``skada.<name>Adapter`` with its defaults."""
_NO_LABEL = -1


@dataclass(frozen=True, eq=False)
class SkadaPredictor:
    """A fitted pipeline of skada; new rows are of the target domain it was fitted to."""

    classes_: npt.NDArray[Any]
    pipeline: Any
    target: int

    @property
    def head(self) -> LinearHead | None:
        """None: what the classifier reads depends on the domain."""
        return None

    def features(self, X: Any) -> Floats:
        """Return the rows as numbers."""
        return np.asarray(as_matrix(X), dtype=np.float64)

    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities in the target domain."""
        domain = np.full(len(X), self.target)
        with sklearn.config_context(enable_metadata_routing=True):
            proba: Floats = self.pipeline.predict_proba(self.features(X), sample_domain=domain)
        return proba

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


@dataclass(frozen=True)
class Skada(Method):
    """A domain adaptation of skada between standardised columns and a classifier.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    estimator : classifier, optional
        Logistic regression by default; must take `sample_weight`.

    Examples
    --------
    >>> Skada("OTMapping").test_access
    'unlabelled'
    """

    name: ClassVar[str] = "skada"
    title: ClassVar[str] = "skada"
    test_access: ClassVar[TestAccess] = "unlabelled"

    method: str = "CORAL"
    estimator: Any = None

    def fit(
        self, train: LabelledRows, *, validation: LabelledRows | None = None, test: Any = None, seed: int = 0
    ) -> SkadaPredictor:
        """Fit on labelled source rows and unlabelled target rows."""
        if self.method not in METHODS:
            raise ValueError(f"Got method={self.method!r}; there are {', '.join(METHODS)}.")
        skada = _skada()
        classes, y = np.unique(train.y, return_inverse=True)
        names, domain = np.unique(train.domain, return_inverse=True)
        target = -(len(names) + 1)  # skada: sources are positive, targets negative
        X = np.concatenate([np.asarray(as_matrix(train.X)), np.asarray(as_matrix(test))]).astype(np.float64)
        y = np.concatenate([y, np.full(len(test), _NO_LABEL)])
        sample_domain = np.concatenate([domain + 1, np.full(len(test), target)])
        with sklearn.config_context(enable_metadata_routing=True):
            last = LogisticRegression(max_iter=1000) if self.estimator is None else clone(self.estimator)
            adapter = getattr(skada, f"{self.method}Adapter")()
            if "random_state" in adapter.get_params():
                adapter.set_params(random_state=seed)
            pipeline = skada.make_da_pipeline(
                StandardScaler(), adapter, last.set_fit_request(sample_weight=True)
            )
            pipeline.fit(X, y, sample_domain=sample_domain)
        return SkadaPredictor(classes, pipeline, target)


def _skada() -> Any:
    try:
        with sklearn.config_context():  # what the import switches on is switched back
            import skada
    except ImportError as error:
        raise ImportError("This comparison needs skada: pip install skada.") from error
    return skada
