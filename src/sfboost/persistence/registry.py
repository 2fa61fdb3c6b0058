"""The closed list of types that a file may name. Nothing else is ever looked up by a name from a file.

The key is what stands in the file, and stays; the value is where the class lives now, with its name after a
colon if that is another one. Types are imported when
they are met, so that this room can stay below the ones whose results it keeps.
"""

from __future__ import annotations

from importlib import import_module
from reprlib import repr as shortened
from typing import Any

from sfboost.persistence.errors import SavedModelError

TYPES: dict[str, str] = {
    # what can be saved by itself
    "StableFeatureBoosting": "sfboost.boosting",
    "AdaptedClassifier": "sfboost.boosting",
    "Adaptation": "sfboost.adaptation",
    "SFBClassifier": "sfboost.torch",
    # what these are made of
    "Columns": "sfboost.boosting",
    "Directions": "sfboost.boosting.components",
    "PlayedComponents": "sfboost.boosting.components",
    "Encoder": "sfboost.encoding",
    "Column": "sfboost.encoding",
    "HeldOutCalibration": "sfboost.boosting",
    "DomainLeak": "sfboost.diagnostics.complementarity",
    "Recalibration": "sfboost.diagnostics.recalibration",
    "BalanceSketch": "sfboost.diagnostics.stability",
    "SupportSketch": "sfboost.diagnostics.stability",
    "PredictionSets": "sfboost.diagnostics.performance",
    "StableFeatureSelector": "sfboost.selection",
    "Selection": "sfboost.selection.result",
    "ColumnVerdict": "sfboost.selection.result",
    "Invariance": "sfboost.selection.invariance",
    "Temperature": "sfboost.calibration",
    "ReliabilityCurve": "sfboost.calibration",
    "PseudoLabelStatistics": "sfboost.marginal",
    "Decision": "sfboost.adaptation",
    "StableEvidence": "sfboost.adaptation",
    "Settings": "sfboost.adaptation.settings:Choices",
    "AdaptationSettings": "sfboost.adaptation.settings:Settings",
    "Training": "sfboost.adaptation",
    "PooledClassifier": "sfboost.boosting.playing",
    "Experience": "sfboost.answers",
    "Case": "sfboost.answers",
    "Habits": "sfboost.answers.mending",
    "Mending": "sfboost.answers.mending",
    "BestAnswer": "sfboost.answers",
    "Choice": "sfboost.answers",
    "StableAnswer": "sfboost.answers.candidates",
    "PooledAnswer": "sfboost.answers.candidates",
    "MendedAnswer": "sfboost.answers.candidates",
    "BoostedAnswer": "sfboost.answers.candidates",
    "RecalibratedAnswer": "sfboost.answers.recalibrating",
    "QuietAnswers": "sfboost.answers.quiet",
    "AveragedAnswer": "sfboost.answers.quiet",
    "ComponentsAnswer": "sfboost.answers.quiet",
    "Reference": "sfboost.change",
    "Change": "sfboost.change",
    "FeatureChange": "sfboost.change",
    "BlindDomain": "sfboost.change.reference",
    "MeaningCoordinates": "sfboost.change.coordinates",
    "Moments": "sfboost.change.moments",
    "DomainHead": "sfboost.adaptation",
    "UnstableModel": "sfboost.adaptation.fitting",
    "Standardizer": "sfboost.adaptation.standardize",
    "CrossFit": "sfboost.adaptation.regularisation",
    "Guard": "sfboost.adaptation.guard",
    "Estimate": "sfboost.adaptation.uncertainty",
    "Uncertainty": "sfboost.adaptation.uncertainty",
    "SoftLogisticRegression": "sfboost.heads",
    "AdamLogisticRegression": "sfboost.heads",
    "SoftLabelClassifier": "sfboost.heads",
    "LinearFit": "sfboost.heads.linear",
    "Bounded": "sfboost.torch.bounded",
    "Scaling": "sfboost.torch.scaling",
    "Precision": "sfboost.torch.precision",
    "Preference": "sfboost.torch.embedding",
    "Plan": "sfboost.torch.plan",
    "Cells": "sfboost.leakage.cells",
    "ScoreModel": "sfboost.leakage.cells",
    "Disagreement": "sfboost.leakage.model",
    "LeakModel": "sfboost.leakage.model",
    "LeakAdaptation": "sfboost.leakage.correction",
    # scikit-learn and scipy: what the default pipelines use
    "Pipeline": "sklearn.pipeline",
    "ColumnTransformer": "sklearn.compose",
    "FrozenEstimator": "sklearn.frozen",
    "StandardScaler": "sklearn.preprocessing",
    "OneHotEncoder": "sklearn.preprocessing",
    "SplineTransformer": "sklearn.preprocessing",
    "BSpline": "scipy.interpolate",
    "SimpleImputer": "sklearn.impute",
    "MissingIndicator": "sklearn.impute",
    "LogisticRegression": "sklearn.linear_model",
    "make_column_selector": "sklearn.compose",
}

#: What a file may hold as a whole.
KINDS = (
    "StableFeatureBoosting",
    "AdaptedClassifier",
    "Adaptation",
    "SFBClassifier",
)


def type_of(name: Any) -> type:
    """The class that a name in a file stands for.

    Examples
    --------
    >>> type_of("Temperature").__name__
    'Temperature'
    """
    if not isinstance(name, str) or name not in TYPES:
        raise SavedModelError(
            f"it holds a {shortened(name)}, which is no type that this version of sfboost knows"
        )
    module, own = _place(name)
    found = getattr(import_module(module), own)
    assert isinstance(found, type)
    return found


def _place(name: str) -> tuple[str, str]:
    """Module and own name of the class behind a name in files."""
    module, _, own = TYPES[name].partition(":")
    return module, own or name


def name_of(cls: type) -> str | None:
    """The name of a class in files, or None if it has none. A subclass is another class.

    Examples
    --------
    >>> name_of(dict) is None
    True
    """
    # Only a class of that name and package can be it; asking so avoids importing torch for nothing.
    package = cls.__module__.partition(".")[0]
    for name in TYPES:
        module, own = _place(name)
        if own == cls.__name__ and module.partition(".")[0] == package and type_of(name) is cls:
            return name
    return None
