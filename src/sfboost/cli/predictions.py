"""Rows in, predictions out, a batch at a time: memory does not grow with the table."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from sfboost.adaptation.costs import decided
from sfboost.boosting import AdaptedDomains
from sfboost.cli.project import Project, check_id, prediction_columns
from sfboost.frames.blocks import over_blocks
from sfboost.frames.cells import as_text
from sfboost.frames.reading import Kind
from sfboost.frames.roles import require_columns
from sfboost.frames.writing import open_table
from sfboost.marginal.probabilities import FloatArray

NOT_ADAPTED = "not adapted"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Predicting:
    """Predictions of batches: id, class, decision, probabilities of the answer and of the stable features.

    Attributes
    ----------
    costs : array of shape (K, K), optional
        What wrong decisions cost; None is what the model was fitted with, if anything.
    many : AdaptedDomains, optional
        With it each row is answered as its domain is, which is named beside the id.
    """

    project: Project
    costs: FloatArray | None = None
    many: AdaptedDomains | None = None

    def __post_init__(self) -> None:
        for name in self._passed_on:
            check_id(name, self.project.model.classes_)

    @property
    def _passed_on(self) -> list[str]:
        roles = self.project.roles
        names = [roles.id, roles.domain if self.many is not None else None]
        return [name for name in names if name is not None]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Of one block."""
        for batch in batches:
            require_columns(batch.schema.names, self._passed_on)
            for name in self._passed_on:
                if pa.types.is_nested(batch.schema.field(name).type):
                    raise ValueError(
                        f"The id {name!r} holds {batch.schema.field(name).type}: an id is one value."
                    )
            yield self._predict(batch)

    def _predict(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        model, encoder = self.project.model, self.project.encoder
        # Encoded once, for all that read it.
        X = pd.DataFrame(encoder.encode(pa.Table.from_batches([batch])), columns=list(encoder.names))
        answer, stable = model.predict_proba(X), model.predict_stable_proba(X)
        decisions = [NOT_ADAPTED] * len(stable)
        if self.many is not None:
            column = str(self.project.roles.domain)
            names = as_text(batch.column(column), column).to_pylist()
            answer = self.many.predict_proba(X, np.array(names, dtype=object))
            decisions = [self.many[name].decision_ for name in names]
        elif self.project.adapted is not None:
            answer = self.project.adapted.predict_proba(X)
            decisions = [self.project.adapted.decision_] * len(stable)
        best = decided(answer, model._costs() if self.costs is None else self.costs)
        values = [
            pa.array(np.asarray(model.classes_)[best]),
            pa.array(decisions),
            *(pa.array(np.ascontiguousarray(column)) for proba in (answer, stable) for column in proba.T),
        ]
        columns = {name: batch.column(name) for name in self._passed_on}
        return pa.RecordBatch.from_pydict(
            columns | dict(zip(prediction_columns(model.classes_), values, strict=True))
        )


def write_predictions(
    work: Predicting,
    source: Any,
    output: str,
    kind: Kind,
    engine: str | None = None,
    skipped: list[str] | None = None,
) -> int:
    """Predict all rows of a source of blocks into one table, and return how many they were."""
    done, schema = 0, None
    with open_table(output, kind) as write:
        for batch in over_blocks(work, source, engine=engine or "here", skipped=skipped):
            rows = batch
            if work.project.roles.id is None:
                row = pa.array(np.arange(done + 1, done + batch.num_rows + 1))
                rows = pa.RecordBatch.from_arrays([row, *batch.columns], ["row", *batch.schema.names])
            schema = schema or rows.schema
            try:
                write(rows.cast(schema))
            except pa.ArrowException as error:
                raise ValueError(f"An id has another type in one file than in the first: {error}") from error
            done += batch.num_rows
            _LOG.info("%d rows predicted", done)
        if not done:
            raise ValueError("The table has a header but no rows: there is nothing to predict.")
    return done
