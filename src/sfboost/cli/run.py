"""`sfboost run`: fit, adapt and predict in one go, without model files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sfboost.cli import options as o
from sfboost.cli.console import speaking
from sfboost.cli.inputs import (
    is_same_file,
    read_new,
    read_training,
    refuse_collisions,
    require_in_file,
    take_new,
)
from sfboost.cli.options import judged_by
from sfboost.cli.outcome import EachDomain, domain_of_rows, finish, holds_many, refuse_for_many
from sfboost.cli.predict import Format, PredictionTable, check_format
from sfboost.cli.predictions import check_also, predict_batches
from sfboost.cli.project import check_id, learn
from sfboost.cli.streams import adapt_blocks, adapt_table, is_long
from sfboost.tables.reading import PIPE, require_table
from sfboost.tables.roles import split
from sfboost.tables.writing import open_table, resolve


@speaking
def run(
    *,
    context: typer.Context,
    train: o.TrainTable,
    columns: o.ColumnOptions,
    output: PredictionTable,
    new: Annotated[
        str | None, typer.Argument(metavar="NEW", help="Rows of new domains; or use --hold-out.")
    ] = None,
    hold_out: Annotated[
        str | None,
        typer.Option("--hold-out", help="Let this domain of TRAIN play the new one, labels hidden."),
    ] = None,
    adapting: o.AdaptOptions,
    evaluate: o.Evaluate = True,
    also: o.Also = None,
    show_domain: Annotated[
        str | None,
        typer.Option(
            "--show-domain",
            help="Domains of NEW, comma-separated, that have a part in the report, however usual they are.",
        ),
    ] = None,
    counting: o.ScoreOptions,
    format: Format = None,
    stream: o.StreamOptions,
    csv: o.CsvOptions,
    config: o.Config = None,
    talk: o.VoiceOptions,
) -> None:
    """Fit to TRAIN, adapt to NEW, predict NEW, and write the report.

    If NEW has the domain column, and several domains in it, each gets an answer of its own.
    If the new rows have the target column, its labels score the predictions and are never used to adapt,
    unless --labels names it.
    """
    output = resolve(output)
    voice = talk.voice(to_pipe=output == PIPE)
    kind, others = check_format(format, output), check_also(split(also))
    refuse_collisions(
        {"TRAIN": train, "NEW": new, "--config": config},
        {"-o": output, "--report": adapting.report, "--card": adapting.card},
    )
    if (new is None) == (hold_out is None):
        raise ValueError(
            "Where are the new rows? Name a table NEW, or a domain of TRAIN with --hold-out; not both."
        )
    if train == new == PIPE:
        raise ValueError("Standard input is one table: name the other one as a file.")
    if new is not None and PIPE not in (train, new) and is_same_file(Path(train), Path(new)):
        raise ValueError(
            f"TRAIN and NEW are the same file ({new}), and no row of it is new: name new rows, or say "
            "--hold-out DOMAIN to let one of its domains play the new one."
        )
    if new is not None:
        require_table(new)
        require_in_file(new, [] if columns.id is None else [columns.id], csv)
        if (
            (adapting.labels or adapting.card)
            and new != PIPE
            and holds_many(new, stream, columns.domain, csv)
        ):
            refuse_for_many(adapting)  # before the work, not after it
    training, held = read_training(train, columns, csv, hold_out)
    # Before the work, not after it.
    check_id(training.roles.id, np.unique(training.y), others)
    if new is not None:
        require_in_file(new, (column.name for column in training.encoder.columns), csv)
    with voice.waiting("Fitting"):
        model = judged_by(o.make_model(context), counting, training.y)
        # A leak asks for the safe answer.
        kind_of_answer = adapting.answer.value if adapting.leak is None else "safe"
        project = learn(training, model, evaluate=evaluate, answer=kind_of_answer)
    rows = name = None
    if held is not None:
        rows = take_new(held, project, f"{columns.domain} = {hold_out}", adapting.labels)
        name = str(hold_out)
    elif not is_long(new, stream, project) or holds_many(str(new), stream, columns.domain, csv):
        rows, name = read_new(str(new), project, csv, adapting.labels, each=True)
        domain = domain_of_rows(rows.table, project, name)
        if domain is not None:
            asked = split(show_domain)
            each = EachDomain(project, rows, domain, name, train, training.remarks, others, asked)
            each.answer(voice, adapting, output, kind, context.find_root().obj)
            return
    if show_domain is not None:
        raise ValueError("--show-domain is for a NEW of several domains, and this one is adapted to as one.")
    with voice.waiting("Adapting"):
        if rows is None or name is None:
            done = adapt_blocks(project, str(new), csv, stream, adapting)
        else:
            done = adapt_table(project, rows, name, adapting)
        project = done.project
        title, remarks = f"{done.name} as a new domain", (*training.remarks, *done.remarks)
        facts = project.facts(
            done.rows,
            title=title,
            source=train,
            rows=adapting.rows,
            ids=adapting.show_ids,
            remarks=remarks,
        )
    with open_table(output, kind) as write:
        for batch in predict_batches(project, done.batches(), done.name, others):
            write(batch)
    finish(voice, project, facts, {"predictions": output}, adapting, done.n_rows, context.find_root().obj)
