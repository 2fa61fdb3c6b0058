"""A model together with its table: what `fit` makes, `adapt` adapts, and a model file keeps as `table_`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import sfboost
from sfboost.boosting import AdaptedClassifier, StableFeatureBoosting
from sfboost.frames import Encoder
from sfboost.frames.preparing import NewTable, TrainingTable
from sfboost.frames.reading import ENDINGS
from sfboost.frames.roles import COMPONENTS, Roles
from sfboost.frames.writing import is_stream
from sfboost.report import TrainingFacts, describe_training
from sfboost.report.training import evaluation_rows, training_of

_LABEL_SHIFT = re.compile(r" With kind='likelihood' (.*?) would be stable\.")
# Standard errors of the slopes are worth their time up to here.
_MOST_PARAMETERS = 100
# Columns that a search is told of one by one.
_MOST_COLUMNS = 12


@dataclass(frozen=True, eq=False)
class Project:
    """Everything that is known after `fit`, and after `adapt`.

    Attributes
    ----------
    roles : Roles
    model : StableFeatureBoosting
        Of the columns of the table; it encodes them itself.
    training : TrainingFacts
        For reports: no training row is kept.
    adapted : AdaptedClassifier or None
    """

    roles: Roles
    model: StableFeatureBoosting
    training: TrainingFacts
    adapted: AdaptedClassifier | None = None

    @property
    def encoder(self) -> Encoder:
        """How the columns of a table are read."""
        assert self.model.encoder_ is not None  # models without one are refused when they are loaded
        return self.model.encoder_

    def adapt(self, new: NewTable, answer: str = "best") -> Project:
        """Adapt to the rows of a new domain; of labels only those that `known` has are looked at."""
        n_parameters = (len(self.model.unstable_columns_) + 1) * len(self.model.classes_)
        uncertainty = n_parameters <= _MOST_PARAMETERS
        return replace(
            self, adapted=self.model.adapt(new.X, new.known, answer=answer, uncertainty=uncertainty)
        )

    def cells(self, new: NewTable, ids: bool) -> list[Mapping[str, Any]]:
        """Rows as they were given, to show some of them; their `ids` only if asked for."""
        stable = set(self.model.stable_columns_.names)
        # The id first, then the unstable features: they are why a prediction changed.
        id = [self.roles.id] if ids and self.roles.id in new.table.column_names else []
        made = self.encoder.outputs_of
        made = self.encoder.outputs_of
        sources = sorted(self.encoder.sources, key=lambda name: stable.issuperset(made([name])))
        return new.table.select([*id, *sources]).to_pylist()

    def require_adapted(self) -> AdaptedClassifier:
        """The adapted classifier, which must be there."""
        if self.adapted is None:
            raise ValueError(
                "This model is not adapted yet: `sfboost adapt MODEL NEW -o ADAPTED` does that first."
            )
        return self.adapted


def learn(
    training: TrainingTable, settings: StableFeatureBoosting, *, evaluate: bool, answer: str = "best"
) -> Project:
    """Fit the model to labelled rows and keep what reports need.

    `answer` is what the model will be asked for: own domains are answered alike.
    """
    check_id(training.roles.id, np.unique(training.y))
    model, rows = configure(training, settings), (training.X, training.y, training.domain)
    try:
        facts = describe_training(model, *rows)
    except ValueError as error:
        raise ValueError(in_options(str(error))) from error
    facts = replace(facts, missing=training.missing())
    if evaluate and len(training.domains) > 1:
        with suppress(ValueError):  # no domain can play the new one: the report then says that it was not run
            found = configure(training, settings).evaluate(*rows, answer=answer)
            facts = replace(facts, evaluation=evaluation_rows(found))
    return Project(training.roles, model, facts)


def configure(training: TrainingTable, settings: StableFeatureBoosting) -> StableFeatureBoosting:
    """The model, unfitted, with the columns of the table."""
    roles = training.roles
    stable: Any = "auto" if roles.search else list(roles.stable)
    unstable: Any = COMPONENTS if roles.components else list(roles.unstable)
    if roles.search:
        unstable = unstable or None
    else:
        for name, columns in (("stable", roles.stable), ("unstable", roles.unstable)):
            if columns and not training.encoder.outputs_of(columns):
                raise ValueError(
                    f"The {name} columns hold one category each and say nothing: name others with --{name}."
                )
    return clone(settings).set_params(stable_features=stable, unstable_features=unstable)


def drift_lines(facts: TrainingFacts) -> list[str]:
    """What a search for stable columns found, the chosen ones and the least drift first."""
    if not facts.drifts:
        return []
    first = facts.drifts[:_MOST_COLUMNS]
    width = max(len(column["name"]) for column in first)
    lines = [
        "searched for stable columns (*: chosen); drift between training domains, and the most it can be:",
        *(
            f"{' *'[c['selected']]} {c['name']:<{width}}  {c['drift']:.3f}  {c['upper']:.3f}  {c['why']}"
            for c in first
        ),
    ]
    if len(facts.drifts) > len(first):
        lines.append(f"  and {len(facts.drifts) - len(first)} more (--json has all)")
    return lines


def in_options(sentence: str) -> str:
    """A sentence of the library in the words of the command line.

    Examples
    --------
    >>> in_options("Pass more rows, raise tolerance, or name stable_features by knowledge.")
    'Pass more rows or name them with --stable by knowledge.'
    """
    return (
        _LABEL_SHIFT.sub(r" If shares of classes alone differ, \1 would be stable.", sentence)
        .replace(", raise tolerance, or ", " or ")
        .replace("or name stable_features", "or name them with --stable")
        .replace("name stable_features", "name them with --stable")
        .replace("unstable_features", "--unstable")
        .replace("stable_features", "--stable")
    )


def prediction_columns(classes: Any) -> list[str]:
    """Columns of the predictions beside the id."""
    names = np.asarray(classes).tolist()
    return ["prediction", "decision", *(f"{kind}_{name}" for kind in ("answer", "stable") for name in names)]


def check_id(id: str | None, classes: Any) -> None:
    """Refuse an id whose name the predictions need for a column of their own."""
    if id in prediction_columns(classes):
        raise ValueError(
            f"The id {id!r} is also the name of a column of the predictions: rename it, or name another."
        )


def save_project(project: Project, path: Path, trusted: Collection[str] = ()) -> None:
    """Write a model, adapted or not, so that `sfboost.load` reads it too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # An adapted model may know more of its rows than the fitted one: directions along which it adapted.
    model = copy(project.model if project.adapted is None else project.adapted.model)
    if project.roles.target is not None:  # else fitted in Python: the model itself says all
        model.table_ = {"roles": project.roles.to_dict(), "training": project.training.to_dict()}
    if project.adapted is None:
        model.save(path, trusted=trusted)
    else:
        AdaptedClassifier(model, project.adapted.adaptation, project.adapted.best).save(path, trusted=trusted)


def check_model_name(path: Path) -> None:
    """Refuse a name that a table has, or that has no ending, before any work is done."""
    if path.suffix in ("", *ENDINGS) and not is_stream(path):
        raise ValueError(f"{path} is to be a model file: call it {path.with_suffix('.sfb')}.")


def load_project(path: Path, trusted: Collection[str] = ()) -> Project:
    """Read what `save_project` wrote, or `save` in Python after `fit` to a frame.

    `trusted` are full names of types beyond the default list that the file may hold.
    """
    if not path.exists():
        raise ValueError(f"There is no file {path}: `sfboost fit TRAIN … -o {path.name}` makes one.")
    loaded = sfboost.load(path, trusted=trusted)
    adapted = loaded if isinstance(loaded, AdaptedClassifier) else None
    model = adapted.model if adapted is not None else loaded
    if not isinstance(model, StableFeatureBoosting):
        raise ValueError(
            f"{path} holds a {type(loaded).__name__}, which knows no table: load it with sfboost.load."
        )
    sets = (model.stable_columns_, model.unstable_columns_)
    if any(columns.encoder is None for columns in sets if len(columns)):
        raise ValueError(
            f"{path} is not loaded: it was fitted in Python to an array, or with a pipeline that reads its "
            "columns itself, so that the command cannot know how to read a table: load it in Python with "
            "sfboost.load."
        )
    table = getattr(model, "table_", None)
    if table is None:
        roles = Roles(None, None, None, sets[0].sources, sets[1].sources)
        return Project(roles, model, training_of(model), adapted)
    try:
        roles, facts = Roles.from_dict(table["roles"]), TrainingFacts.from_dict(table["training"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} is not loaded: what it says of its table is malformed ({error!r})."
        ) from error
    return Project(roles, model, facts, adapted)
