"""`sfboost run`: fit, adapt and predict in one go, without model files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sfboost.cli import options as o
from sfboost.cli.console import speaking
from sfboost.cli.inputs import NewSource, is_same_file, read_new, read_training, refuse_collisions
from sfboost.cli.options import judged_by
from sfboost.cli.outcome import answer_each, answer_one, finish
from sfboost.cli.predict import PredictionTable, check_format
from sfboost.cli.predictions import Predicting, write_predictions
from sfboost.cli.project import check_id, learn
from sfboost.frames.reading import PIPE
from sfboost.frames.writing import resolve


@speaking
def run(
    *,
    context: typer.Context,
    train: o.TrainTable,
    columns: o.ColumnOptions,
    output: PredictionTable,
    new: Annotated[
        str | None, typer.Argument(metavar="NEW", help="Rows of target domains; or use --hold-out.")
    ] = None,
    hold_out: Annotated[
        str | None,
        typer.Option("--hold-out", help="Take this domain of TRAIN as the target, labels hidden."),
    ] = None,
    adapting: o.AdaptOptions,
    evaluate: o.Evaluate = True,
    counting: o.ScoreOptions,
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
    kind = check_format(output)
    refuse_collisions(
        {"TRAIN": train, "NEW": new, "--config": config},
        {"-o": output, "--report": adapting.report},
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
            "--hold-out DOMAIN to take one of its domains as the target."
        )
    training, held = read_training(train, columns, csv, hold_out)
    # Before the work, not after it.
    check_id(training.roles.id, np.unique(training.y))
    if held is not None:
        found = NewSource(held, str(hold_out), held.num_rows, held)
    else:
        table = (str(new), training.roles, training.encoder, csv, stream, adapting.labels)
        found = read_new(*table, predict=True)
    domain = None if held is not None else found.domains(training.roles.domain)
    if domain is not None and adapting.labels is not None:
        raise ValueError("--labels are of one target domain, and NEW holds several: give the rows of one.")
    with voice.waiting("Fitting"):
        model = judged_by(o.make_model(context), counting, training.y)
        project = learn(training, model, evaluate=evaluate, answer=adapting.answer)
    written, command = {"predictions": output}, context.find_root().obj
    if domain is not None:
        asked = (train, training.remarks, adapting, written, kind, command)
        answer_each(voice, project, found, domain, *asked)
        return
    with voice.waiting("Adapting"):
        project, facts = answer_one(project, found, adapting, train, training.remarks)
        skipped: list[str] | None = [] if stream.skip_unreadable else None
        write_predictions(Predicting(project), found.source, output, kind, stream.engine, skipped)
    finish(voice, project, facts, written, adapting, found.n_rows, command)
