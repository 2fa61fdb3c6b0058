"""`adapt`: from stable probabilities and unstable features to an `Adaptation`."""

from __future__ import annotations

import warnings
from typing import Any

from sfboost.adaptation.adaptation import Adaptation
from sfboost.adaptation.checks import (
    check_classes,
    check_known_labels,
    check_row_count,
    check_unstable,
    check_weight,
)
from sfboost.adaptation.decision import (
    AdaptationRefused,
    AdaptationWarning,
    StableEvidence,
    decide,
    notes_on_classes,
)
from sfboost.adaptation.fitting import fit_unstable
from sfboost.adaptation.problem import Problem
from sfboost.adaptation.regularisation import cross_fit
from sfboost.adaptation.settings import Settings, resolve
from sfboost.adaptation.standardize import Standardizer
from sfboost.heads import SoftLabelMixin
from sfboost.marginal import as_probability_matrix


def adapt(
    stable_proba: Any,
    X_unstable: Any,
    *,
    y: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    method: str = "default",
    correction: str | None = None,
    rounds: int | None = None,
    head: Any = None,
    l2: float | str = "auto",
    pseudo_labels: str | None = None,
    labelled_risk: str | None = None,
    calibrate_unstable: bool | None = None,
    standardize: bool | str = "auto",
    evidence: StableEvidence | None = None,
    force: bool = False,
    random_state: int = 0,
) -> Adaptation:
    """Learn how to use unstable features in a new domain, from calibrated stable predictions alone.

    The features may be ones that changed their meaning, or ones that exist only in the new domain,
    such as a newly bought sensor: nothing about them is taken from training.

    Parameters
    ----------
    stable_proba : array-like of shape (n,) or (n, K)
        Calibrated probabilities of the stable predictor for rows of the new domain. A vector is the
        probability of the second of two classes.
    X_unstable : array-like, sparse matrix or DataFrame of shape (n, d)
        Unstable features of the same rows.
    y : array-like of shape (n,), optional
        Labels where they are known; None, NaN or (if it is not a class) -1 elsewhere.
    classes : array-like of shape (K,), optional
        Names of the columns of `stable_proba`; 0..K-1 by default.
    sample_weight : array-like of shape (n,), optional
    method : {"default", "paper"}
        "paper" is Algorithm 1 (2 for K > 2): soft labels, a few Adam steps, post-hoc correction.
        "default" maximises the likelihood that EM climbs, with an L2 penalty chosen without labels.
        What follows changes single choices of the method; None keeps them.
    correction : {"likelihood", "posthoc", "posthoc-repeated", "forward", "backward", "none"}
    rounds : int
        Rounds of pseudo-labelling: the first as `correction` says, the others EM.
    head : classifier
        One of `sfboost.heads`, or any scikit-learn classifier or pipeline that takes `sample_weight`.
    l2 : "auto" or float
        Penalty of the default head; "auto" chooses it by cross-fitted likelihood.
    pseudo_labels : {"soft", "hard", "sampled"}
    labelled_risk : {"unstable", "joint"}
        Whether known labels are compared with f_U or with the combination (Eq. 3.2).
    calibrate_unstable : bool
        Temperature-scale the head against its pseudo-labels (off by default, as in the paper).
    standardize : "auto" or bool
        Centre and scale X_unstable with the statistics of these rows. "auto": yes for our heads; a
        wrapped classifier or pipeline does its own preparation, fitted on these rows too.
    evidence : StableEvidence, optional
        How much the stable predictor beat the class balance on held-out training rows.
    force : bool
        Adapt even where the rows are too few or the stable predictor is not shown to be informative.
    random_state : int
        Seed of the folds that choose the penalty, and of sampled pseudo-labels.

    Returns
    -------
    Adaptation

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
    >>> adaptation = adapt(stable, sensor)
    >>> adaptation.decision.kind
    'adapted'
    >>> float((adaptation.predict(stable, sensor) == truth).mean().round(2))
    0.9
    """
    settings = resolve(
        method,
        l2,
        correction=correction,
        rounds=rounds,
        head=head,
        pseudo_labels=pseudo_labels,
        labelled_risk=labelled_risk,
        calibrate_unstable=calibrate_unstable,
        random_state=random_state,
    )
    stable = as_probability_matrix(stable_proba)
    if len(stable) == 1:
        raise ValueError(
            "One row cannot tell how the new domain differs: pass all unlabelled rows of the domain to "
            "`adapt`, and single rows to `predict_proba`."
        )
    names = check_classes(classes, stable.shape[1])
    weight = check_weight(sample_weight, len(stable))
    known = check_known_labels(y, names, len(stable))
    X, standardizer = _prepare(X_unstable, weight, settings, standardize)
    problem = Problem(stable, X, known, weight)
    decision = decide(problem, evidence, force=force)
    notes = notes_on_classes(problem, names) if decision.kind == "adapted" else []
    for note in notes:
        warnings.warn(note, AdaptationWarning, stacklevel=2)
    unstable = fitted = None
    if decision.kind == "adapted":
        choose = settings.head is None
        fitted = cross_fit(problem, settings) if choose else None
        unstable = fit_unstable(problem, settings, fitted.l2 if fitted else None)
    else:
        warnings.warn(
            f"The stable predictor was kept: {decision.reason}. Pass force=True to adapt all the same.",
            AdaptationRefused,
            stacklevel=2,
        )
    return Adaptation(
        classes=names,
        decision=decision,
        prior=problem.prior,
        statistics=problem.statistics,
        unstable=unstable,
        standardizer=standardizer,
        cross_fit=fitted,
        settings=settings,
        n_rows=len(stable),
        n_labelled=len(problem.labelled),
        n_features=X.shape[1],
        warnings=tuple(notes),
    )


def _prepare(
    X_unstable: Any, weight: Any, settings: Settings, standardize: bool | str
) -> tuple[Any, Standardizer | None]:
    """Check the unstable features and standardise them unless a wrapped pipeline does its own."""
    if standardize not in (True, False, "auto"):
        raise ValueError(f'standardize={standardize!r} is not known: use True, False or "auto".')
    wrapped = settings.head is not None and not isinstance(settings.head, SoftLabelMixin)
    if wrapped and standardize is not True:
        X = X_unstable if hasattr(X_unstable, "shape") else check_unstable(X_unstable, n_rows=len(weight))
        check_row_count(X, len(weight))
        return X, None
    X = check_unstable(X_unstable, n_rows=len(weight))
    if standardize is False:
        return X, None
    standardizer = Standardizer.fit(X, weight)
    return standardizer.apply(X), standardizer
