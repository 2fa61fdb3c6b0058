"""`sfboost run`: fit, adapt and predict in one go, without model files."""

from __future__ import annotations

from typing import Annotated

import typer

from sfboost.cli import options as o
from sfboost.cli.collisions import refuse_collisions
from sfboost.cli.console import speaking
from sfboost.cli.inputs import read_new, read_training, take_new
from sfboost.cli.outcome import finish
from sfboost.cli.predict import Format, PredictionTable, check_format
from sfboost.cli.predictions import BATCH_ROWS, predict_batches
from sfboost.cli.project import learn
from sfboost.tables.reading import PIPE
from sfboost.tables.writing import open_table, resolve


@speaking
def run(
    *,
    context: typer.Context,
    train: o.TrainTable,
    columns: o.ColumnOptions,
    output: PredictionTable,
    new: Annotated[str | None, typer.Argument(help="Rows of one new domain; or use --hold-out.")] = None,
    hold_out: Annotated[
        str | None,
        typer.Option("--hold-out", help="Let this domain of TRAIN play the new one, labels hidden."),
    ] = None,
    adapting: o.AdaptOptions,
    evaluate: o.Evaluate = True,
    format: Format = None,
    csv: o.CsvOptions,
    config: o.Config = None,
    talk: o.VoiceOptions,
) -> None:
    """Fit to TRAIN, adapt to NEW, predict NEW, and write the report.

    If the new rows have the target column, its labels score the predictions and are never used to adapt.
    """
    output = resolve(output)
    voice = talk.voice(to_pipe=output == PIPE)
    kind = check_format(format, output)
    refuse_collisions(
        {"TRAIN": train, "NEW": new, "--config": config}, {"-o": output, "--report": adapting.report}
    )
    if (new is None) == (hold_out is None):
        raise ValueError(
            "Where are the new rows? Name a table NEW, or a domain of TRAIN with --hold-out; not both."
        )
    if train == new == PIPE:
        raise ValueError("Standard input is one table: name the other one as a file.")
    training, held = read_training(train, columns, csv, hold_out)
    with voice.waiting("Fitting"):
        project = learn(training, o.make_model(context), evaluate=evaluate)
    if held is not None:
        here, name = take_new(held, project, f"{columns.domain} = {hold_out}"), str(hold_out)
    else:
        here, name = read_new(str(new), project, csv)
    with voice.waiting("Adapting"):
        project = project.adapt(here, answer=adapting.answer.value, leak=adapting.leak)
        facts = project.facts(
            here, title=f"{name} as a new domain", source=train, rows=adapting.rows, remarks=training.remarks
        )
    with open_table(output, kind) as write:
        for batch in predict_batches(project, here.table.to_batches(BATCH_ROWS), name):
            write(batch)
    finish(voice, project, facts, {"predictions": output}, adapting)
