"""Rows in, predictions out, a batch at a time: memory does not grow with the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from sfboost.adaptation.costs import decided
from sfboost.boosting import AdaptedDomains
from sfboost.boosting.scored_domains import ANSWER
from sfboost.cli.project import Project, check_id, prediction_columns
from sfboost.encoding.cells import as_text
from sfboost.marginal.probabilities import FloatArray
from sfboost.streaming.blocks import BATCH_ROWS
from sfboost.tables.preparing import frame
from sfboost.tables.roles import require_columns

NOT_ADAPTED = "not adapted"


def predict_batches(
    project: Project,
    batches: Iterable[pa.RecordBatch],
    name: str = "The table",
    also: tuple[str, ...] = (),
    costs: FloatArray | None = None,
    many: AdaptedDomains | None = None,
) -> Iterator[pa.RecordBatch]:
    """Predictions of each batch: id or row number, class, decision, adapted and stable probabilities.

    `also` names other answers whose probabilities are to stand beside them: see `check_also`. With `many`
    each row is answered as its domain is, which is named beside the id. Without `costs` those count that the
    model was fitted with, if it was.
    """
    check_id(project.roles.id, project.model.classes_, also)
    if many is not None:
        check_id(project.roles.domain, project.model.classes_, also)
    first = 1
    for batch in batches:
        if first == 1:
            wanted = [column.name for column in project.encoder.columns]
            require_columns(batch.schema.names, [*wanted, *_ids(project)], name)
            for id in _ids(project):
                if pa.types.is_nested(batch.schema.field(id).type):
                    raise ValueError(
                        f"The id {id!r} holds {batch.schema.field(id).type}: an id is one value."
                    )
        for start in range(0, batch.num_rows, BATCH_ROWS):
            part = batch.slice(start, BATCH_ROWS)
            yield _predict(project, part, first, also, costs, many)
            first += part.num_rows


def check_also(names: tuple[str, ...]) -> tuple[str, ...]:
    """Answers to write beside the one that is given; what the stable features say is always there.

    Examples
    --------
    >>> check_also(("pooled", "stable"))
    ('pooled', 'stable')
    """
    for name in names:
        if name not in ("pooled", "stable"):
            raise ValueError(
                f"--also {name} is not known: say pooled (all features as trained), stable, or both."
            )
    return names


def needed_columns(project: Project) -> list[str]:
    """Columns that predicting reads."""
    return [*_ids(project), *(column.name for column in project.encoder.columns)]


def _ids(project: Project) -> list[str]:
    return [] if project.roles.id is None else [project.roles.id]


def _predict(
    project: Project,
    batch: pa.RecordBatch,
    first: int,
    also: tuple[str, ...],
    costs: FloatArray | None,
    many: AdaptedDomains | None,
) -> pa.RecordBatch:
    X = frame(project.encoder, batch)
    stable = project.model.predict_proba(X)
    joint, decisions, domain = stable, [NOT_ADAPTED] * len(X), project.roles.domain
    if many is not None and domain is not None:
        names = as_text(batch.column(domain), domain).to_pylist()
        joint = many.predict_proba(X, np.array(names, dtype=object))
        decisions = [many[name].decision_ for name in names]
    elif project.adapted is not None:
        joint, decisions = project.adapted.predict_proba(X), [project.adapted.decision_] * len(X)
    said = {ANSWER: joint, "stable": stable}
    if "pooled" in also:
        said["pooled"] = project.pooled_proba(X)
    best = decided(joint, project.model._costs() if costs is None else costs)
    columns: dict[str, Any] = {}
    if project.roles.id is None:
        columns["row"] = pa.array(np.arange(first, first + len(X)))
    else:
        columns[project.roles.id] = batch.column(project.roles.id)
    if many is not None and domain is not None:
        columns[domain] = batch.column(domain)
    values = [
        pa.array(np.asarray(project.model.classes_)[best]),
        pa.array(decisions),
        *(pa.array(np.ascontiguousarray(column)) for proba in said.values() for column in proba.T),
    ]
    columns |= zip(prediction_columns(project.model.classes_, also), values, strict=True)
    return pa.RecordBatch.from_pydict(columns)
