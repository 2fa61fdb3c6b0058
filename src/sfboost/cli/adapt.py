"""`sfboost adapt`: a model file and unlabelled rows of a new domain in, an adapted model file out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfboost.cli import options as o
from sfboost.cli.collisions import refuse_collisions
from sfboost.cli.console import Voice, speaking
from sfboost.cli.files import check_model_name, load_project, save_project
from sfboost.cli.inputs import read_new
from sfboost.cli.outcome import leave, tell, write_pages
from sfboost.tables.roles import split


@speaking
def adapt(
    model: Annotated[Path, typer.Argument(help="Model file that `sfboost fit` wrote.")],
    new: o.NewTable,
    output: Annotated[Path, typer.Option("-o", "--output", help="Model file to write, e.g. adapted.sfb.")],
    report: o.Report = None,
    card: o.Card = None,
    rows: o.Rows = True,
    answer: o.Answer = o.AnswerName.safe,
    leak: o.Leak = None,
    require_adapted: o.RequireAdapted = False,
    delimiter: o.Delimiter = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    config: o.Config = None,
    trusted: o.Trusted = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Learn, without labels, what the unstable features mean in a new domain.

    If the new table has the target column, its labels score the predictions and are never used to adapt.
    """
    voice = Voice(quiet, as_json)
    check_model_name(output)
    refuse_collisions(
        {"MODEL": model, "NEW": new, "--config": config}, {"-o": output, "--report": report, "--card": card}
    )
    project = load_project(model, split(trusted))
    rows_here, name = read_new(new, project, delimiter=delimiter, decimal=decimal, encoding=encoding)
    with voice.waiting("Adapting"):
        project = project.adapt(rows_here, answer=answer.value, leak=leak)
        facts = project.facts(rows_here, title=f"{name} as a new domain", source=model.name, rows=rows)
    save_project(project, output, split(trusted))
    written = {"model": str(output)}
    written |= write_pages(facts, report, card)
    tell(voice, project, facts, written)
    leave(project, require_adapted)
