"""The change test for owners of a model: probabilities and extra features as arrays, from any framework."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.adaptation import Training
from sfboost.adaptation.checks import check_unstable, check_weight
from sfboost.adaptation.settings import Settings, resolve
from sfboost.answers import Experience
from sfboost.boosting.diagnosing import know_training, training_rows
from sfboost.boosting.domains import stable_evidence
from sfboost.boosting.evaluation import default_classifier
from sfboost.boosting.playing import Asker
from sfboost.calibration import Temperature
from sfboost.change import Change, DomainData, change_in
from sfboost.change.domain_data import centred
from sfboost.diagnostics import Recalibration, training_leaks
from sfboost.diagnostics.rows import check_domain, rows_by_domain
from sfboost.heads import fit_with_weight
from sfboost.marginal import as_probability_matrix, floored_log
from sfboost.marginal.probabilities import FloatArray, IntArray


def learn_training(
    stable_proba: Any, X_unstable: Any, y: Any, domain: Any, *, sample_weight: Any = None
) -> Training:
    """What labelled domains know: for `sfboost.adapt(training=...)` and `sfboost.change_test`.

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
    >>> change_test(stable[:500], sensor[:500], training).verdict
    'unchanged'
    >>> change_test(stable[:500], 1 - sensor[:500], training).verdict
    'changed'
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
    evidence = stable_evidence(labels, floored_log(stable), weight)
    leaks = None if rows.X_unstable is None else training_leaks(rows)
    share = weight / weight.sum()
    errors = Recalibration.fit(rows.stable, rows.y, rows.domain, rows.weight)
    training = know_training(evidence, leaks, share @ stable, errors)
    return replace(training, experience=experience_of(stable, U, labels, names, weight, resolve()))


def experience_of(
    stable: FloatArray,
    U: FloatArray,
    labels: IntArray,
    domain: npt.NDArray[Any],
    weight: FloatArray,
    choices: Settings,
    names: tuple[str, ...] | None = None,
) -> Experience | None:
    """What own domains teach where f_S and U are all there is: pooled is logistic regression on both.

    `choices` are those of the adaptations to come: own domains must play with what new rows will get.

    None with one domain, or where a class is in one domain alone. f_S is the same in every domain that plays:
    if it has seen that domain in training it flatters what is built on it.
    """
    log_stable, every = floored_log(stable), np.arange(len(stable))
    features, places = centred(log_stable), rows_by_domain(domain)
    both, classes = np.hstack([features, U]), np.arange(stable.shape[1])
    played = []
    for _, mine in places:
        rest = np.setdiff1d(every, mine)
        if len(np.unique(labels[rest])) < len(classes):
            return None
        pooled = fit_with_weight(default_classifier(U), both[rest], labels[rest], weight[rest])
        ask = Asker(pooled, features[mine], classes, Temperature())
        part = weight[mine] / weight[mine].sum()
        played.append(DomainData(log_stable[mine], U[mine], ask(U[mine]), features[mine], part, ask=ask))
    experience = Experience.learn(
        played,
        [labels[mine] for _, mine in places],
        [name for name, _ in places],
        choices,
        names=names,
        learner="logistic regression on what the stable predictor says and on the unstable features",
    )
    return replace(experience, pooled=fit_with_weight(default_classifier(U), both, labels, weight))


def rows_of(experience: Experience, log_stable: FloatArray, U: FloatArray, weight: FloatArray) -> DomainData:
    """Rows of a new domain as the candidates see them, where f_S and U are all there is."""
    features = centred(log_stable)
    ask = Asker(experience.pooled, features, np.arange(log_stable.shape[1]), Temperature())
    return DomainData(log_stable, U, ask(U), features, weight / weight.sum(), ask=ask)


def change_test(
    stable_proba: Any, X_unstable: Any, training: Training, *, sample_weight: Any = None
) -> Change:
    """Whether the unstable features mean in a new domain what they meant in training, without labels.

    Parameters
    ----------
    stable_proba, X_unstable : as in `sfboost.adapt`
    training : Training
        Of `learn_training`.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    Change
        Its verdict ("changed", "unchanged", "cannot tell"), the same by feature, and how much of the meaning
        of each is left.
    """
    experience = training.experience
    if experience is None or experience.pooled is None:
        raise ValueError(
            "training does not know what is usual: make it with sfboost.learn_training from two domains or "
            "more. A StableFeatureBoosting says it by itself, as adapt(X).change_."
        )
    stable = as_probability_matrix(stable_proba)
    U = np.asarray(check_unstable(X_unstable, n_rows=len(stable)), dtype=np.float64)
    weight = check_weight(sample_weight, len(stable))
    rows = rows_of(experience, floored_log(stable), U, weight)
    return change_in(experience.reference, rows)
