"""The numbers as JSON that any language reads; `docs/export.md` has a scorer of thirty lines."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import sfboost
from sfboost.boosting import AdaptedClassifier, StableFeatureBoosting
from sfboost.export.linear import LinearScorer, linear_scorer
from sfboost.json_values import json_values

FORMAT = "sfboost-linear"
VERSION = 1


def to_json(model: AdaptedClassifier | StableFeatureBoosting) -> str:
    """The coefficients of a fitted or adapted model as JSON.

    Parameters
    ----------
    model : StableFeatureBoosting or AdaptedClassifier
        With logistic regression on either side, as is the default.
    """
    scorer = linear_scorer(model)
    values = _numbers(scorer)
    encoders = [columns.encoder for columns in scorer.sources if columns.encoder is not None]
    head = {"format": FORMAT, "version": VERSION, "made_by": f"sfboost {sfboost.__version__}"}
    # How text and gaps of a table become the features: numbers alone need no recipe.
    recipes = [recipe for encoder in encoders for recipe in encoder.to_dict()["columns"]]
    rest = {"costs": scorer.costs, "encoding": recipes}
    return json.dumps(json_values(head | values | rest, finite=False), allow_nan=False, indent=1)


def _numbers(scorer: LinearScorer) -> dict[str, Any]:
    values = asdict(replace(scorer, sources=(), mixed_with=()))
    del values["sources"], values["costs"]  # one matrix for all parts of a blend
    return values | {"mixed_with": [_numbers(part) for part in scorer.mixed_with]}
