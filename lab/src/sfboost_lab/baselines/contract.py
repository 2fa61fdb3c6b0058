"""Two contracts: a *trainer* turns labelled domains into a predictor, an *adapter* a predictor into another.

Both are frozen dataclasses of hyper-parameters. A trainer sees nothing of the test domain; an adapter says in
`test_access` what it may see. The harness hands over no more. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from sfboost.registry import unknown

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]
TestAccess = Literal["none", "unlabelled", "labelled"]
"""From the least to the most that a method may see of the test domain."""

SYNTHETIC_FAMILIES = (
    "synthetic",
    "ac",
    "ce_dd",
    "multiclass_ac",
    "three_parts",
    "gaussian",
)
SETTINGS = (*SYNTHETIC_FAMILIES, "colored_mnist", "pacs")
"""The names that `Method.preset` knows."""


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows with labels and the domain of each.

    Parameters
    ----------
    X : array-like
        One entry per row.
    y : ndarray of shape (n,)
        Labels of any type.
    domain : ndarray of shape (n,)
        The name of each row's domain.

    Examples
    --------
    >>> import numpy as np
    >>> len(LabelledRows(np.zeros((3, 2)), np.array([0, 1, 1]), np.array(["a", "a", "b"])))
    3
    """

    X: Any
    y: npt.NDArray[Any]
    domain: npt.NDArray[Any]

    def __post_init__(self) -> None:
        if not len(self.X) == len(self.y) == len(self.domain):
            raise ValueError(
                f"X, y and domain need one entry per row, got {len(self.X)}, {len(self.y)} and "
                f"{len(self.domain)}."
            )

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class LinearHead:
    """A linear classifier of features with one logit per class, also for two classes.

    Parameters
    ----------
    coef : ndarray of shape (K, d)
    intercept : ndarray of shape (K,)

    Examples
    --------
    >>> import numpy as np
    >>> head = LinearHead.of(np.array([[2.0]]), np.array([0.0]))  # one log-odds becomes two logits
    >>> head.coef.ravel().tolist(), head.proba(np.array([[0.0]])).tolist()
    ([-1.0, 1.0], [[0.5, 0.5]])
    """

    coef: Floats
    intercept: Floats

    @classmethod
    def of(cls, coef: npt.ArrayLike, intercept: npt.ArrayLike) -> Self:
        """Return the head of K rows; one row is the log-odds of the second of two classes.

        The log-odds are shared evenly, ∓w/2: a zero row would have no direction, which T3A needs.
        """
        rows, start = np.array(coef, dtype=np.float64), np.array(intercept, dtype=np.float64)
        if len(rows) == 1:
            rows, start = np.vstack([-rows, rows]) / 2, np.concatenate([-start, start]) / 2
        return cls(rows, start)

    def logits(self, features: Any) -> Floats:
        """Return the logits of shape (n, K)."""
        return np.asarray(features, dtype=np.float64) @ self.coef.T + self.intercept

    def log_proba(self, features: Any) -> Floats:
        """Return the logarithm of `proba`."""
        result: Floats = log_softmax(self.logits(features), axis=1)
        return result

    def proba(self, features: Any) -> Floats:
        """Return the class probabilities of shape (n, K)."""
        return np.exp(self.log_proba(features))


@runtime_checkable
class Predictor(Protocol):
    """What a trainer returns. Predicting never changes it.

    ``head.proba(features(X))`` is ``predict_proba(X)`` wherever there is a head; a classifier without a last
    linear layer has None there, and adapters that need one say so. A predictor with stable and unstable parts
    also offers ``stable_and_unstable(X)`` → (log f_S of shape (n, K), Φ_U of shape (n, d_U)) and `evidence_`.
    One that is a network also has `body`, the module that maps rows to features.
    """

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, in the order of the columns of `predict_proba`."""

    @property
    def head(self) -> LinearHead | None:
        """The last linear layer, or None."""

    def features(self, X: Any) -> Floats:
        """Return what the last linear layer reads, of shape (n, d)."""

    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities of shape (n, K)."""

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row."""


class MostProbable:
    """A predictor that answers with the most probable class."""

    classes_: Any
    predict_proba: Callable[..., Floats]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


@dataclass(frozen=True)
class Method:
    """What trainers and adapters share: a name, what they may see, and published settings.

    Class attributes
    ----------------
    name, title : str
        The key in the list, and how tables print it.
    test_access : {"none", "unlabelled", "labelled"}
        What of the test domain is handed over; tables call "labelled" ORACLE.
    presets : mapping of str to mapping
        Hyper-parameters of a published setting ("colored_mnist", "synthetic", ...).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    test_access: ClassVar[TestAccess] = "none"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @classmethod
    def preset(cls, setting: str, **changes: Any) -> Self:
        """Return the method with the hyper-parameters of a published setting, and changes to them.

        A known setting that this method has no values of its own for gives its defaults.
        """
        if setting not in SETTINGS:
            raise ValueError(unknown("published setting", setting, SETTINGS))
        return cls(**{**cls.presets.get(setting, {}), **changes})


class Trainer(Protocol):
    """Labelled domains → predictor. `fit` depends on its inputs and the seed alone, and changes neither."""

    name: ClassVar[str]
    title: ClassVar[str]

    def fit(self, train: LabelledRows, *, validation: LabelledRows | None = None, seed: int = 0) -> Predictor:
        """Learn from labelled rows of the training domains.

        Parameters
        ----------
        train : LabelledRows
        validation : LabelledRows, optional
            Rows of the training domains, or of a validation domain, that are not trained on.
        seed : int
        """


class Adapter(Protocol):
    """Predictor + rows of the test domain → new predictor. The source predictor stays as it was."""

    name: ClassVar[str]
    title: ClassVar[str]
    test_access: ClassVar[TestAccess]
    head_only: ClassVar[bool]
    """Whether it changes the linear head alone; it then is a `HeadAdapter` and works from cached features."""

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Adapt to the rows of one test domain; labels are passed only to what declares labelled access."""


class HeadAdapter(Method):
    """Base of adapters that change the linear head alone: `adapt_features` is all they define."""

    head_only: ClassVar[bool] = True
    test_access: ClassVar[TestAccess] = "unlabelled"

    def adapt_features(
        self, head: LinearHead, features: Floats, y: Positions | None = None, *, seed: int = 0
    ) -> LinearHead:
        """Return the adapted head, from cached features and (labelled access) positions of the classes."""
        raise NotImplementedError

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Adapt the head of any predictor that has one."""
        head = head_of(predictor, self.title)
        y = None if y_test is None else np.searchsorted(predictor.classes_, y_test)
        return HeadPredictor(predictor, self.adapt_features(head, predictor.features(X_test), y, seed=seed))


@dataclass(frozen=True, eq=False)
class HeadPredictor(MostProbable):
    """A predictor with another linear head on the features of the first.

    Examples
    --------
    >>> import numpy as np
    >>> first = FeaturePredictor(np.array(["no", "yes"]), LinearHead.of([[1.0]], [0.0]))
    >>> HeadPredictor(first, LinearHead.of([[-1.0]], [0.0])).predict(np.array([[3.0]]))
    array(['no'], dtype='<U3')
    """

    source: Predictor
    head: LinearHead

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes of the source."""
        return self.source.classes_

    def features(self, X: Any) -> Floats:
        """Return the features of the source."""
        return self.source.features(X)

    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities by the new head."""
        return self.head.proba(self.features(X))


@dataclass(frozen=True, eq=False)
class FeaturePredictor(MostProbable):
    """A linear head on rows that are features already, such as cached ones.

    Examples
    --------
    >>> import numpy as np
    >>> FeaturePredictor(np.array([0, 1]), LinearHead.of([[1.0]], [0.0])).predict(np.array([[3.0]]))
    array([1])
    """

    classes_: npt.NDArray[Any]
    head: LinearHead

    def features(self, X: Any) -> Floats:
        """Return the rows as they are."""
        return np.asarray(X, dtype=np.float64)

    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities."""
        return self.head.proba(self.features(X))


def head_of(predictor: Predictor, who: str) -> LinearHead:
    """Return the linear head of a predictor, or say that it has none.

    Examples
    --------
    >>> import numpy as np
    >>> head_of(FeaturePredictor(np.array([0, 1]), LinearHead.of([[1.0]], [0.0])), "T3A").coef.shape
    (2, 1)
    """
    if predictor.head is None:
        raise ValueError(
            f"{who} changes the last linear layer, and this predictor ({type(predictor).__name__}) has none. "
            "Use a trainer with a linear head (a network, or logistic regression), or another adapter."
        )
    return predictor.head
