"""`sfboost adapt`: a model file and unlabelled rows of a new domain in, an adapted model file out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfboost.cli import options as o
from sfboost.cli.collisions import refuse_collisions
from sfboost.cli.console import speaking
from sfboost.cli.files import check_model_name, load_project, save_project
from sfboost.cli.inputs import read_new
from sfboost.cli.outcome import finish
from sfboost.tables.roles import split


@speaking
def adapt(
    *,
    model: Annotated[Path, typer.Argument(help="Model file that `sfboost fit` wrote.")],
    new: o.NewTable,
    output: Annotated[Path, typer.Option("-o", "--output", help="Model file to write, e.g. adapted.sfb.")],
    adapting: o.AdaptOptions,
    csv: o.CsvOptions,
    config: o.Config = None,
    trusted: o.Trusted = None,
    talk: o.VoiceOptions,
) -> None:
    """Learn, without labels, what the unstable features mean in a new domain.

    If the new table has the target column, its labels score the predictions and are never used to adapt.
    """
    voice = talk.voice()
    check_model_name(output)
    refuse_collisions(
        {"MODEL": model, "NEW": new, "--config": config}, {"-o": output, "--report": adapting.report}
    )
    project = load_project(model, split(trusted))
    rows_here, name = read_new(new, project, csv)
    with voice.waiting("Adapting"):
        project = project.adapt(rows_here, answer=adapting.answer.value, leak=adapting.leak)
        facts = project.facts(
            rows_here, title=f"{name} as a new domain", source=model.name, rows=adapting.rows
        )
    save_project(project, output, split(trusted))
    finish(voice, project, facts, {"model": str(output)}, adapting)
