"""`sfboost run`: fit, adapt and predict in one go, without model files."""

from __future__ import annotations

from typing import Annotated

import typer

from sfboost.cli import options as o
from sfboost.cli.collisions import refuse_collisions
from sfboost.cli.console import Voice, speaking
from sfboost.cli.inputs import read_new, read_training, take_new
from sfboost.cli.outcome import leave, tell, write_pages
from sfboost.cli.predict import Format, PredictionTable, check_format
from sfboost.cli.predictions import BATCH_ROWS, predict_batches
from sfboost.cli.project import learn
from sfboost.tables.reading import PIPE
from sfboost.tables.writing import open_table, resolve


@speaking
def run(
    context: typer.Context,
    train: o.TrainTable,
    target: o.Target,
    domain: o.Domain,
    output: PredictionTable,
    new: Annotated[str | None, typer.Argument(help="Rows of one new domain; or use --hold-out.")] = None,
    hold_out: Annotated[
        str | None,
        typer.Option("--hold-out", help="Let this domain of TRAIN play the new one, labels hidden."),
    ] = None,
    stable: o.Stable = None,
    unstable: o.Unstable = None,
    id: o.Id = None,
    drop: o.Drop = None,
    categorical: o.Categorical = None,
    report: o.Report = None,
    card: o.Card = None,
    rows: o.Rows = True,
    evaluate: o.Evaluate = True,
    answer: o.Answer = o.AnswerName.safe,
    leak: o.Leak = None,
    require_adapted: o.RequireAdapted = False,
    format: Format = None,
    delimiter: o.Delimiter = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    config: o.Config = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Fit to TRAIN, adapt to NEW, predict NEW, and write the report.

    If the new rows have the target column, its labels score the predictions and are never used to adapt.
    """
    output = resolve(output)
    voice = Voice(quiet, as_json, to_pipe=output == PIPE)
    kind = check_format(format, output)
    refuse_collisions(
        {"TRAIN": train, "NEW": new, "--config": config}, {"-o": output, "--report": report, "--card": card}
    )
    if (new is None) == (hold_out is None):
        raise ValueError(
            "Where are the new rows? Name a table NEW, or a domain of TRAIN with --hold-out; not both."
        )
    if train == new == PIPE:
        raise ValueError("Standard input is one table: name the other one as a file.")
    training, held = read_training(
        train,
        target=target,
        domain=domain,
        stable=stable,
        unstable=unstable,
        id=id,
        drop=drop,
        categorical=categorical,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        hold_out=hold_out,
    )
    with voice.waiting("Fitting"):
        project = learn(training, o.make_model(context), evaluate=evaluate)
    if held is not None:
        here, name = take_new(held, project, f"{domain} = {hold_out}"), str(hold_out)
    else:
        here, name = read_new(str(new), project, delimiter=delimiter, decimal=decimal, encoding=encoding)
    with voice.waiting("Adapting"):
        project = project.adapt(here, answer=answer.value, leak=leak)
        facts = project.facts(
            here, title=f"{name} as a new domain", source=train, rows=rows, remarks=training.remarks
        )
    with open_table(output, kind) as write:
        for batch in predict_batches(project, here.table.to_batches(BATCH_ROWS), name):
            write(batch)
    written = {"predictions": output}
    written |= write_pages(facts, report, card)
    tell(voice, project, facts, written)
    leave(project, require_adapted)
