"""`adapt_stream`: `StableFeatureBoosting.adapt` for tables of any length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from sfboost.adaptation.summed import Overview, adapt_summed
from sfboost.boosting import AdaptedClassifier, StableFeatureBoosting
from sfboost.boosting.diagnosing import with_leak, with_note
from sfboost.boosting.parts import as_fitted, both_parts, require_summable
from sfboost.marginal.probabilities import FloatArray
from sfboost.streaming.blocks import Block, find_blocks, spill
from sfboost.streaming.engines import BatchEngine, Here, Passes
from sfboost.streaming.packing import fingerprint
from sfboost.streaming.rows import Look, Looked, SumOver


@dataclass(frozen=True, eq=False)
class Streamed:
    """An adaptation to a table that was never here as a whole.

    Attributes
    ----------
    adapted : AdaptedClassifier
    sample : Table
        At most 20 000 of its rows, chosen by a hash of the row: what checks and reports look at.
    n_rows, n_passes : int
    skipped : tuple of str
        Blocks that could not be read and were left out, and why.
    blocks : tuple of Block
        Those that were read.
    """

    adapted: AdaptedClassifier
    sample: pa.Table
    n_rows: int
    n_passes: int
    skipped: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()


def adapt_stream(
    model: StableFeatureBoosting,
    source: Any,
    *,
    engine: BatchEngine | None = None,
    answer: str = "best",
    leak: float | None = None,
    uncertainty: bool = False,
    skip_unreadable: bool = False,
    resume: str | Path | None = None,
    label: str = "",
) -> Streamed:
    """Adapt to a table that need not fit into memory: constant memory, the head fitted to *all* rows.

    The result is that of `model.adapt` of the same rows, to 1e-6 in probability, whatever the order of the
    rows, the blocks and the engine.

    Parameters
    ----------
    model : StableFeatureBoosting
        Fitted, with the default head.
    source : path, list of Block, or Arrow stream
        A file (CSV, Parquet, Arrow), a folder of them, the blocks of `find_blocks`, or what can be read once:
        a `RecordBatchReader` or anything with `__arrow_c_stream__` (DuckDB, Polars), which is first written
        to temporary files.
    engine : BatchEngine, optional
        `Here()` by default, or `RayData()`.
    answer, leak, uncertainty : as in `StableFeatureBoosting.adapt`
        With answer="best" the test and the choice look at `Streamed.sample`; SFB's head is of all rows.
    skip_unreadable : bool
        Leave blocks out that cannot be read (`Streamed.skipped`), in place of an error that names them.
    resume : path, optional
        A folder for the results of finished blocks. A run that was stopped goes on from there.
    label : str
        What tells this model from another in `resume`; needed with it.
    """
    require_summable(model)
    if isinstance(source, str | Path):
        source = find_blocks(source, columns=_columns(model))
    if not isinstance(source, Sequence) or not all(isinstance(block, Block) for block in source):
        with TemporaryDirectory(prefix="sfboost-rows-") as folder:
            blocks = spill(source, folder)
            return adapt_stream(
                model, blocks, engine=engine, answer=answer, leak=leak, uncertainty=uncertainty
            )
    passes = Passes(engine or Here(), list(source), None if resume is None else Path(resume), skip_unreadable)
    marks = (label, fingerprint(model.temperature_), model.unstable_columns_.names)
    looked: Looked = passes(Look(model), fingerprint("looked", *marks) if resume else "")
    settings = model.settings
    drawn, choices = looked.drawn, model._choices(settings)
    answer, rows, note = model._answer_to(
        answer, leak, settings, lambda: model._rows_to_answer(as_fitted(model, drawn), None)
    )
    answer = "checked" if rows is not None else answer  # SFB is then one candidate of several
    training = with_leak(model.training_, leak, answer)
    stable, X = both_parts(model, drawn)
    alarm = model._alarm(answer, leak, uncertainty, training, stable, X, choices)

    def over_all(function: Callable[[FloatArray, FloatArray], Any]) -> Any:
        return passes(SumOver(model, function), fingerprint(function, *marks) if resume else "")

    adaptation = adapt_summed(
        Overview(looked.statistics, looked.standardizer, stable, X, looked.all_certain),
        over_all,
        choices,
        classes=model.classes_,
        training=training,
        answer=answer,
        uncertainty=uncertainty,
        alarm=alarm,
    )
    n_rows = int(looked.statistics.weight)
    if rows is not None:
        # Whether a meaning changed, and what helps, a sample can tell; the head is of all rows.
        adapted = model._choose(rows, adaptation, choices)
    else:
        adapted = AdaptedClassifier(copy(model), with_note(adaptation, note))
    return Streamed(adapted, drawn, n_rows, passes.done, tuple(passes.skipped), tuple(passes.blocks))


def _columns(model: StableFeatureBoosting) -> tuple[str, ...]:
    """Columns of a table that the model reads; all if it was fitted to an array."""
    encoder = model.encoder_
    return () if encoder is None else tuple(column.name for column in encoder.columns)
