"""`sfboost predict`: a model file and a table of any length in, predictions out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfboost.cli import options as o
from sfboost.cli.collisions import refuse_collisions
from sfboost.cli.console import speaking
from sfboost.cli.files import load_project
from sfboost.cli.predictions import BATCH_ROWS, needed_columns, predict_batches
from sfboost.tables.dialect import Kind, kind_of_name
from sfboost.tables.preparing import csv_types
from sfboost.tables.reading import PIPE, Source, open_batches
from sfboost.tables.roles import split
from sfboost.tables.writing import is_stream, open_table, resolve

PredictionTable = Annotated[
    str,
    typer.Option(
        "-o", "--output", help="Predictions: a name ending in .csv, .parquet or .arrow; - is standard output."
    ),
]
Format = Annotated[
    str | None, typer.Option("--format", help="csv, parquet or arrow, where the output's name does not say.")
]


@speaking
def predict(
    *,
    model: Annotated[Path, typer.Argument(help="Model file that `sfboost adapt` (or `fit`) wrote.")],
    new: o.NewTable,
    output: PredictionTable,
    format: Format = None,
    csv: o.CsvOptions,
    trusted: o.Trusted = None,
    talk: o.VoiceOptions,
) -> None:
    """Predict the rows of a table, a batch at a time.

    Each row gets the class, the adapted and the stable probabilities and the decision (adapted, blended, kept
    stable, not adapted). The file appears when it is complete.
    """
    output = resolve(output)
    voice = talk.voice(to_pipe=output == PIPE)
    kind = check_format(format, output)
    refuse_collisions({"MODEL": model, "NEW": new}, {"-o": output})
    project = load_project(model, split(trusted))
    if project.adapted is None:
        voice.note(f"{model} is not adapted to this domain: the stable features alone predict.")
    source = csv.find(new)
    types, done = csv_types(project.roles, project.encoder), 0
    with (
        open_batches(source, BATCH_ROWS, types, needed_columns(project)) as (total, batches),
        voice.progress() as progress,
        open_table(output, kind) as write,
    ):
        task = progress.add_task("Predicting", total=total or _estimate(source))
        for batch in predict_batches(project, batches, source.name):
            write(batch)
            done += batch.num_rows
            progress.update(task, completed=done)
        if not done:
            raise ValueError(f"{source.name} has no rows: there is nothing to predict.")
    decision = "not adapted" if project.adapted is None else project.adapted.decision_
    voice.result(
        {"rows": done, "decision": decision, "file": output},
        f"predicted {done} rows ({decision}): {output}",
    )


def check_format(name: str | None, output: str) -> Kind:
    """The format that is asked for, by name or by the ending of the file; a pipe or device gets CSV."""
    if name is None:
        return "csv" if output == PIPE or is_stream(Path(output)) else kind_of_name(Path(output))
    if name in ("csv", "parquet", "arrow"):
        return name  # type: ignore[return-value]
    raise ValueError(f"--format {name} is not known: use csv, parquet or arrow.")


def _estimate(source: Source) -> float | None:
    """About how many rows a CSV file has, from its size and its first lines."""
    lines = source.head.count(b"\n")
    if source.kind != "csv" or source.size is None or not lines:
        return None
    return source.size / (len(source.head) / lines)
