"""`sfboost predict`: a model file and a table of any length in, predictions out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sfboost.cli import options as o
from sfboost.cli.console import Voice, speaking
from sfboost.cli.inputs import refuse_collisions
from sfboost.cli.options import read_costs
from sfboost.cli.predictions import NOT_ADAPTED, check_also, needed_columns, predict_batches
from sfboost.cli.project import Project, load_project
from sfboost.cli.streams import batches_of, blocks_of, is_folder, label_of, predict_folder
from sfboost.marginal.probabilities import FloatArray
from sfboost.streaming.blocks import BATCH_ROWS
from sfboost.tables.preparing import csv_types
from sfboost.tables.reading import PIPE, Kind, Source, kind_of_name, open_batches
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
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file that `sfboost adapt` (or `fit`) wrote.")
    ],
    new: o.NewTable,
    output: PredictionTable,
    also: o.Also = None,
    format: Format = None,
    costs: o.Costs = None,
    stream: o.StreamOptions,
    csv: o.CsvOptions,
    trusted: o.Trusted = None,
    talk: o.VoiceOptions,
) -> None:
    """Predict the rows of a table, a batch at a time.

    Each row gets the class, the adapted and the stable probabilities and the decision (adapted, blended, kept
    stable, not adapted). The file appears when it is complete. A folder as output (its name ends in /) gets a
    file for each block of NEW, and appears when all are there; a command that was stopped goes on, if it is
    given again.
    """
    output = resolve(output)
    voice = talk.voice(to_pipe=output == PIPE)
    to_folder = is_folder(output)
    kind = check_format(format or "parquet" if to_folder else format, output)
    others = check_also(split(also))
    refuse_collisions({"MODEL": model, "NEW": new}, {"-o": Path(output) / "part" if to_folder else output})
    project = load_project(model, split(trusted))
    matrix = read_costs(costs, project.model.classes_, _shares(project))
    if project.adapted is None:
        voice.note(f"{model} is not adapted to this domain: the stable features alone predict.")
    decision = NOT_ADAPTED if project.adapted is None else project.adapted.decision_
    if to_folder or (new != PIPE and Path(new).is_dir()):
        blocks, remarks = blocks_of(project, new, csv)
        voice.note(*remarks)
        if to_folder:
            label = label_of(model) if costs is None else f"{label_of(model)} {costs}"
            done, notes = predict_folder(project, blocks, output, kind, stream, label, others, matrix)
            voice.note(*notes)
        else:
            done = 0
            with open_table(output, kind) as write:
                for batch in predict_batches(project, batches_of(blocks), Path(new).name, others, matrix):
                    write(batch)
                    done += batch.num_rows
        _tell(voice, done, decision, output)
        return
    source = csv.find(new)
    types, done = csv_types(project.roles, project.encoder), 0
    with (
        open_batches(source, BATCH_ROWS, types, needed_columns(project)) as (total, batches),
        voice.progress() as progress,
        open_table(output, kind) as write,
    ):
        task = progress.add_task("Predicting", total=total or _estimate(source))
        for batch in predict_batches(project, batches, source.name, others, matrix):
            write(batch)
            done += batch.num_rows
            progress.update(task, completed=done)
        if not done:
            raise ValueError(f"{source.name} has no rows: there is nothing to predict.")
    _tell(voice, done, decision, output)


def _shares(project: Project) -> FloatArray:
    """Of the classes, over all training rows."""
    domains = project.training.domains
    shares = np.average([d.shares for d in domains], axis=0, weights=[d.n_rows for d in domains])
    return np.asarray(shares, dtype=np.float64)


def _tell(voice: Voice, done: int, decision: str, output: str) -> None:
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
