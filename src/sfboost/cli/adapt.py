"""`sfboost adapt`: a model file and unlabelled rows of a target domain in, an adapted model file out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfboost.cli import options as o
from sfboost.cli.console import speaking
from sfboost.cli.inputs import read_new, refuse_collisions
from sfboost.cli.outcome import answer_one, finish
from sfboost.cli.project import check_model_name, load_project, save_project
from sfboost.frames.roles import split


@speaking
def adapt(
    *,
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that `sfboost fit` wrote.")],
    new: o.NewTable,
    output: Annotated[Path, typer.Option("-o", "--output", help="Model file to write, e.g. adapted.sfb.")],
    adapting: o.AdaptOptions,
    stream: o.StreamOptions,
    csv: o.CsvOptions,
    config: o.Config = None,
    trusted: o.Trusted = None,
    talk: o.VoiceOptions,
) -> None:
    """Adapt a model, without labels, to the rows of one target domain.

    If the new table has the target column, its labels score the predictions and are never used to adapt,
    unless --labels names it.
    """
    voice = talk.voice()
    check_model_name(output)
    refuse_collisions(
        {"MODEL": model, "NEW": new, "--config": config},
        {"-o": output, "--report": adapting.report},
    )
    project = load_project(model, split(trusted))
    with voice.waiting("Adapting"):
        found = read_new(new, project.roles, project.encoder, csv, stream, adapting.labels)
        project, facts = answer_one(project, found, adapting, model.name)
    save_project(project, output, split(trusted))
    finish(voice, project, facts, {"model": str(output)}, adapting, found.n_rows, context.find_root().obj)
