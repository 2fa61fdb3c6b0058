"""`sfboost run`: fit, adapt and predict in one go, without model files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfboost.cli import options as o
from sfboost.cli.collisions import refuse_collisions
from sfboost.cli.console import Voice, speaking
from sfboost.cli.inputs import read_new, read_training, take_new
from sfboost.cli.outcome import leave, tell, write_report
from sfboost.cli.predict import Format, PredictionTable, check_format
from sfboost.cli.predictions import BATCH_ROWS, predict_batches
from sfboost.cli.project import learn
from sfboost.cli.streams import adapt_blocks, batches_of, blocks_of, is_long
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
    rows: o.Rows = True,
    evaluate: o.Evaluate = True,
    answer: o.Answer = o.AnswerName.safe,
    leak: o.Leak = None,
    require_adapted: o.RequireAdapted = False,
    engine: o.Engine = None,
    skip_unreadable: o.SkipUnreadable = False,
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
    refuse_collisions({"TRAIN": train, "NEW": new, "--config": config}, {"-o": output, "--report": report})
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
    dialect = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
    n_rows, remarks = None, training.remarks
    if held is None and is_long(new, engine, project):
        name = Path(str(new)).name
        blocks = blocks_of(project, str(new), **dialect)
        with voice.waiting("Adapting"):
            done = adapt_blocks(
                project,
                blocks,
                name,
                engine=engine,
                answer=answer.value,
                leak=leak,
                skip_unreadable=skip_unreadable,
            )
        project, here, n_rows, remarks = done.project, done.rows, done.n_rows, (*remarks, *done.remarks)
        batches = batches_of(done.blocks)
    else:
        if held is not None:
            here, name = take_new(held, project, f"{domain} = {hold_out}"), str(hold_out)
        else:
            here, name = read_new(str(new), project, **dialect)
        with voice.waiting("Adapting"):
            project = project.adapt(here, answer=answer.value, leak=leak)
        batches = iter(here.table.to_batches(BATCH_ROWS))
    facts = project.facts(here, title=f"{name} as a new domain", source=train, rows=rows, remarks=remarks)
    with open_table(output, kind) as write:
        for batch in predict_batches(project, batches, name):
            write(batch)
    written = {"predictions": output}
    if report is not None:
        write_report(facts, report)
        written["report"] = str(report)
    tell(voice, project, facts, written, n_rows)
    leave(project, require_adapted)
