"""How sure is this row? Prediction sets, calibrated on source domains, each left out in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import _safe_indexing

from sfboost.adaptation.decision import unwarned
from sfboost.boosting.evaluation import class_positions, fit_without, turns
from sfboost.diagnostics.performance import PredictionSets
from sfboost.diagnostics.rows import check_domain, rows_by_domain
from sfboost.frames import EncodingWarning

if TYPE_CHECKING:
    from sfboost.boosting.estimator import StableFeatureBoosting


def calibrate_sets(
    model: StableFeatureBoosting, X: Any, y: Any, sample_domain: Any, **how: Any
) -> PredictionSets:
    """Prediction sets whose coverage is calibrated on left-out domains.

    As in `evaluate`, a clone of the model is fitted to the other domains and adapted to the one left out, its
    labels hidden. Many domains are left out in groups.

    Parameters
    ----------
    X, y, sample_domain : as in `fit`
    how : dict
        Handed on to `adapt`, such as ``answer``: ask for what will be asked for in the new domain.

    Returns
    -------
    PredictionSets
        ``sets.predict_set(adapted.predict_proba(X_new), coverage=0.9)``.
    """
    labels, domain = np.asarray(y), check_domain(sample_domain, len(y))
    parts = rows_by_domain(domain)
    if len(parts) < 2:
        raise ValueError(
            f"Sets are calibrated on domains that are left out, and there is {parts[0][0]} alone: pass "
            "rows of two domains or more."
        )
    probas, classes = np.zeros((len(labels), len(np.unique(labels)))), np.unique(labels)
    for together in turns(parts):
        with unwarned(EncodingWarning):  # `fit` has told of it
            fitted = fit_without(model, {name for name, _ in together}, X, labels, domain)
        for _, inside in together:
            here = _safe_indexing(X, inside)
            with unwarned(EncodingWarning):
                proba = fitted.adapt(here, **how).predict_proba(here)
            probas[np.ix_(inside, np.searchsorted(classes, fitted.classes_))] = proba
    return PredictionSets.calibrate(probas, class_positions(classes, labels), domain)
