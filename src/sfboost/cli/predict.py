"""`sfboost predict`: a model file and a table of any length in, predictions out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfboost.cli import options as o
from sfboost.cli.console import speaking
from sfboost.cli.inputs import new_blocks, refuse_collisions
from sfboost.cli.options import read_costs
from sfboost.cli.predictions import NOT_ADAPTED, Predicting, write_predictions
from sfboost.cli.project import load_project
from sfboost.frames.reading import PIPE, Kind, kind_of_name
from sfboost.frames.roles import split
from sfboost.frames.writing import is_stream, resolve

PredictionTable = Annotated[
    str,
    typer.Option(
        "-o", "--output", help="Predictions: a name ending in .csv, .parquet or .arrow; - is standard output."
    ),
]


@speaking
def predict(
    *,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file that `sfboost adapt` (or `fit`) wrote.")
    ],
    new: o.NewTable,
    output: PredictionTable,
    costs: o.Costs = None,
    stream: o.StreamOptions,
    csv: o.CsvOptions,
    trusted: o.Trusted = None,
    talk: o.VoiceOptions,
) -> None:
    """Predict the rows of a table, a batch at a time.

    Each row gets the class, the adapted and the stable probabilities and the decision (pooled, adapted,
    kept stable, not adapted). The file appears when it is complete.
    """
    output = resolve(output)
    voice = talk.voice(to_pipe=output == PIPE)
    kind = check_format(output)
    refuse_collisions({"MODEL": model, "NEW": new}, {"-o": output})
    project = load_project(model, split(trusted))
    work = Predicting(project, read_costs(costs, project.model.classes_))
    if project.adapted is None:
        voice.note(f"{model} is not adapted to this domain: all features predict, as trained.")
    decision = NOT_ADAPTED if project.adapted is None else project.adapted.decision_
    skipped: list[str] | None = [] if stream.skip_unreadable else None
    blocks = new_blocks(new, project.roles, project.encoder, csv)
    with voice.waiting("Predicting"):
        done = write_predictions(work, blocks, output, kind, stream.engine, skipped)
    voice.note(*(f"Left out: {why}" for why in skipped or ()))
    voice.result(
        {"rows": done, "decision": decision, "file": output},
        f"predicted {done} rows ({decision}): {output}",
    )


def check_format(output: str) -> Kind:
    """The format that the ending of a file asks for; a pipe or a device gets CSV."""
    return "csv" if output == PIPE or is_stream(Path(output)) else kind_of_name(Path(output))
