"""Model files of the command line: what `save` writes, with the description of the table as `table_`."""

from __future__ import annotations

from copy import copy
from pathlib import Path

import sfboost
from sfboost.boosting import AdaptedClassifier, StableFeatureBoosting
from sfboost.cli.project import Project, as_plain, from_plain
from sfboost.tables.dialect import ENDINGS
from sfboost.tables.writing import is_stream


def save_project(project: Project, path: Path) -> None:
    """Write a model, adapted or not, so that `sfboost.load` reads it too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    model = copy(project.model)
    model.table_ = as_plain(project)
    if project.adapted is None:
        model.save(path)
    else:
        AdaptedClassifier(model, project.adapted.adaptation).save(path)


def check_model_name(path: Path) -> None:
    """Refuse a name that a table has, or that has no ending, before any work is done."""
    if path.suffix in ("", *ENDINGS) and not is_stream(path):
        raise ValueError(f"{path} is to be a model file: call it {path.with_suffix('.sfb')}.")


def load_project(path: Path) -> Project:
    """Read what `save_project` wrote."""
    if not path.exists():
        raise ValueError(f"There is no file {path}: `sfboost fit TRAIN … -o {path.name}` makes one.")
    loaded = sfboost.load(path)
    adapted = loaded if isinstance(loaded, AdaptedClassifier) else None
    model = adapted.model if adapted is not None else loaded
    table = getattr(model, "table_", None)
    if not isinstance(model, StableFeatureBoosting) or table is None:
        raise ValueError(
            f"{path} holds a {type(loaded).__name__} that knows no table, since it was saved from Python: "
            "load it there with sfboost.load."
        )
    try:
        return from_plain(table, model, adapted)
    except ValueError as error:
        raise ValueError(f"{path} is not loaded: {error}.") from error
