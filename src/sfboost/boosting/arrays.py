"""For owners of a model: calibrated probabilities and unstable features as arrays, from any framework."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.adaptation import Settings, Training
from sfboost.adaptation.checks import as_rows, check_classes, check_unstable, check_weight
from sfboost.boosting.adaptable import AdaptableClassifier, Parts
from sfboost.boosting.adapted import AdaptedClassifier
from sfboost.boosting.diagnosing import know_training, training_rows
from sfboost.boosting.evaluation import default_classifier
from sfboost.boosting.validation import raw_log_proba
from sfboost.choice import SourceRecord
from sfboost.diagnostics.rows import check_domain, rows_by_domain
from sfboost.heads import fit_with_weight
from sfboost.marginal import as_probability_matrix, floored_log
from sfboost.marginal.probabilities import FloatArray, IntArray
from sfboost.shift import DomainData
from sfboost.shift.rows import centred


class GivenProbabilities(AdaptableClassifier):
    """A stable predictor that is somebody else's: its rows are pairs of its probabilities and X_U."""

    unstable_names_: tuple[str, ...]
    n_features_in_: int

    def __init__(
        self, transport: str = "posterior", settings: Settings | None = None, random_state: int = 0
    ) -> None:
        self.transport = transport
        self.settings = settings
        self.random_state = random_state

    def _choices(self, settings: Settings | None) -> Settings:
        settings = Settings() if settings is None else settings
        if isinstance(settings, Settings) and settings.random_state is None:
            settings = replace(settings, random_state=self.random_state)
        return super()._choices(settings)

    def stable_and_unstable(self, X: Any) -> tuple[FloatArray, Any]:
        """Return log f_S and X_U of pairs."""
        stable = as_probability_matrix(X[0], n_classes=len(self.classes_))
        with np.errstate(divide="ignore"):
            return np.log(stable), X[1]

    def answer_rows(self, X: Any, sample_weight: Any = None, parts: Parts | None = None) -> DomainData | None:
        """Rows as the decision sees them; None where training knows no classifier of both."""
        record = self.training_.record
        if record is None or record.pooled is None:
            return None
        stable = as_probability_matrix(X[0], n_classes=len(self.classes_))
        U = np.asarray(check_unstable(X[1], n_rows=len(stable)), dtype=np.float64)
        return rows_of(record, floored_log(stable), U, check_weight(sample_weight, len(stable)))


def adapt(
    stable_proba: Any,
    X_unstable: Any,
    *,
    y: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    training: Training | None = None,
    transport: str = "posterior",
    answer: str = "best",
    settings: Settings | None = None,
    random_state: int = 0,
) -> AdaptedClassifier:
    """Learn how to use unstable features in a target domain, from calibrated stable predictions alone.

    The features may be ones that changed their meaning, or ones that exist only in the target domain, such as
    a newly bought sensor: without `training` nothing about them is taken from source domains.

    Parameters
    ----------
    stable_proba : array-like of shape (n,) or (n, K)
        Calibrated probabilities of the stable predictor for rows of the target domain. A vector is the
        probability of the second of two classes.
    X_unstable : array-like, sparse matrix or DataFrame of shape (n, d)
        Unstable features of the same rows.
    y : array-like of shape (n,), optional
        Labels where they are known; None, NaN or (if it is not a class) -1 elsewhere. What the unstable
        features mean is learned best if the labelled rows were not chosen by their label.
    classes : array-like of shape (K,), optional
        Names of the columns of `stable_proba`; 0..K-1 by default.
    sample_weight : array-like of shape (n,), optional
        Relative weights of the rows; their scale does not matter. For a given `l2` a row of weight two is
        that row twice. With l2="auto" it is not: a weighted row is one observation, so it is on one side of
        every split and the rows are worth (Σw)² / Σw²; copies of a row are not told from new rows.
    training : Training, optional
        Of `sfboost.learn_training`: then what moved is asked, and the answer is the one that
        `StableFeatureBoosting.adapt` gives. Without it X_U is learned anew (SFB), and nobody can say whether
        f_S is stable and independent of X_U within a class, which this assumes.
    transport : {"posterior", "likelihood"}
        What transports from training: P(Y | X_S), the paper, or P(X_S | Y), label shift, where the class
        shares of the target domain are estimated too.
    answer : {"best", "safe"}
        As in `StableFeatureBoosting.adapt`.
    settings : Settings, optional
        How f_U is fitted.
    random_state : int
        Seed of the folds that choose the penalty, and of sampled pseudo-labels.

    Returns
    -------
    AdaptedClassifier
        It predicts for pairs: ``adapted.predict_proba(stable_proba, X_unstable)``.

    Warns
    -----
    AdaptationRefused
        If the stable predictor is kept.

    Examples
    --------
    A stable predictor that is right 75 % of the time, and a new sensor that is right 90 % of the time:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 5000)
    >>> stable = np.where(rng.random(5000) < 0.75, truth, 1 - truth) * 0.5 + 0.25
    >>> sensor = np.where(rng.random(5000) < 0.90, truth, 1 - truth).reshape(-1, 1)
    >>> adapted = adapt(stable, sensor)
    >>> adapted.decision_
    'adapted'
    >>> float((adapted.predict(stable, sensor) == truth).mean().round(2))
    0.9

    References
    ----------
    .. [1] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36.
    """
    stable = as_probability_matrix(stable_proba)
    given = GivenProbabilities(transport, settings, random_state)
    given.classes_ = check_classes(classes, stable.shape[1])
    given.training_ = Training() if training is None else training
    X = as_rows(X_unstable, len(stable)) if not hasattr(X_unstable, "tocsr") else X_unstable
    given.n_features_in_ = X.shape[1]
    given.unstable_names_ = tuple(getattr(X, "columns", None) or (f"x{j}" for j in range(X.shape[1])))
    return given.adapt((stable, X), y, sample_weight, answer=answer)


def learn_training(
    stable_proba: Any, X_unstable: Any, y: Any, domain: Any, *, sample_weight: Any = None
) -> Training:
    """What labelled domains know: for `sfboost.adapt(training=...)`.

    Parameters
    ----------
    stable_proba : array-like of shape (n,) or (n, K)
        Calibrated probabilities of the stable predictor for rows that it was not trained on, best for whole
        domains that it was not trained on.
    X_unstable : array-like of shape (n, d)
    y : array-like of shape (n,)
        Labels, 0..K-1 or any K values in the order of the columns of `stable_proba`.
    domain : array-like of shape (n,)
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    Training

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> stable = np.where(rng.random(2000) < 0.8, y, 1 - y) * 0.6 + 0.2
    >>> sensor = (y + rng.normal(size=2000))[:, None]
    >>> training = learn_training(stable, sensor, y, np.repeat([1, 2, 3, 4], 500))
    >>> adapt(stable[:500], sensor[:500], training=training).shift_.verdict
    'nothing'
    >>> adapt(stable[:500], 1 - sensor[:500], training=training).shift_.verdict
    'unstable'
    """
    stable = as_probability_matrix(stable_proba)
    names = check_domain(domain, len(stable))
    weight = check_weight(sample_weight, len(stable))
    U = np.asarray(check_unstable(X_unstable, n_rows=len(stable)), dtype=np.float64)
    classes, labels = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) != stable.shape[1]:
        raise ValueError(
            f"y holds {len(classes)} classes and stable_proba has {stable.shape[1]} columns: pass rows of "
            "every class."
        )
    every = np.arange(len(stable))
    rows = training_rows(stable, labels, names, every, U, weight=weight)
    training, _ = know_training(rows, floored_log(stable))
    return replace(training, record=record_of(stable, U, labels, names, weight))


def record_of(
    stable: FloatArray,
    U: FloatArray,
    labels: IntArray,
    domain: npt.NDArray[Any],
    weight: FloatArray,
    names: tuple[str, ...] | None = None,
) -> SourceRecord | None:
    """What source domains teach where f_S and X_U are all there is: pooled is logistic regression on both.

    None with one domain, or where a class is in one domain alone. f_S is the same in every domain: if it has
    seen a domain in training it flatters what is built on it.
    """
    log_stable, every = floored_log(stable), np.arange(len(stable))
    features, places = centred(log_stable), rows_by_domain(domain)

    def fitted(rows: IntArray) -> tuple[Any, Any]:
        both = np.hstack([features[rows], U[rows]])
        part = labels[rows], weight[rows]
        return tuple(fit_with_weight(default_classifier(X), X, *part) for X in (both, U[rows]))

    left_out = []
    for _, mine in places:
        rest = np.setdiff1d(every, mine)
        if len(np.unique(labels[rest])) < stable.shape[1]:
            return None
        left_out.append(_rows(*fitted(rest), log_stable[mine], U[mine], weight[mine]))
    record = SourceRecord.learn(
        left_out,
        [labels[mine] for _, mine in places],
        [name for name, _ in places],
        names=names,
        stable_groups=[0] * features.shape[1],  # f_S is one feature, however many its classes
        pooled_name="logistic regression on what the stable predictor says and on the unstable features",
    )
    pooled, unstable = fitted(every)
    return replace(record, pooled=pooled, unstable=unstable)


def rows_of(record: SourceRecord, log_stable: FloatArray, U: FloatArray, weight: FloatArray) -> DomainData:
    """Rows of a target domain as the decision sees them, where f_S and X_U are all there is."""
    return _rows(record.pooled, record.unstable, log_stable, U, weight)


def _rows(
    pooled: Any, unstable: Any, log_stable: FloatArray, U: FloatArray, weight: FloatArray
) -> DomainData:
    features, classes = centred(log_stable), np.arange(log_stable.shape[1])

    def ask(S: FloatArray, U: FloatArray) -> FloatArray:
        return raw_log_proba(pooled, np.hstack([S, U]), classes)

    alone, weight = raw_log_proba(unstable, U, classes), weight / weight.sum()
    return DomainData(log_stable, U, ask(features, U), features, weight, alone, ask=ask)
