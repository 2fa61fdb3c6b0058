"""Model files of the command line: what `save` writes, with the description of the table as `table_`."""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from pathlib import Path

import sfboost
from sfboost.boosting import AdaptedClassifier, StableFeatureBoosting
from sfboost.cli.project import Project, as_plain, from_plain, from_python
from sfboost.tables.reading import ENDINGS
from sfboost.tables.writing import is_stream


def save_project(project: Project, path: Path, trusted: Collection[str] = ()) -> None:
    """Write a model, adapted or not, so that `sfboost.load` reads it too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # An adapted model may know more of its rows than the fitted one: directions along which it adapted.
    model = copy(project.model if project.adapted is None else project.adapted.model)
    if project.roles.target is not None:  # else fitted in Python: the model itself says all
        model.table_ = as_plain(project)
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
    table = getattr(model, "table_", None)
    try:
        return from_python(model, adapted) if table is None else from_plain(table, model, adapted)
    except ValueError as error:
        raise ValueError(f"{path} is not loaded: {error}.") from error
