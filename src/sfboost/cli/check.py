"""`sfboost check`: the assumptions, and nothing else."""

from __future__ import annotations

from typing import Annotated

import typer

from sfboost.cli import options as o
from sfboost.cli.console import Line, Voice, speaking
from sfboost.cli.inputs import read_training
from sfboost.cli.project import configure
from sfboost.diagnostics import Diagnosis
from sfboost.report.questions import QUESTIONS
from sfboost.tables.preparing import csv_types, prepare_new
from sfboost.tables.reading import find, read

_COLOURS = {"holds": "green", "cannot tell": "dim", "doubtful": "yellow", "violated": "red"}


@speaking
def check(
    context: typer.Context,
    train: o.TrainTable,
    target: o.Target,
    domain: o.Domain,
    new: Annotated[str | None, typer.Argument(help="Rows of one new domain, if there are any.")] = None,
    stable: o.Stable = None,
    unstable: o.Unstable = None,
    id: o.Id = None,
    drop: o.Drop = None,
    categorical: o.Categorical = None,
    level: Annotated[float, typer.Option(help="Nominal false-alarm rate of each check.")] = 0.05,
    delimiter: o.Delimiter = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    config: o.Config = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Check each assumption: its number, a verdict, and what to do. Nothing is adapted."""
    voice = Voice(quiet, as_json)
    training, _ = read_training(
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
    )
    voice.note(*training.remarks)
    model, X_new = configure(training, o.make_model(context)), None
    if new is not None:
        source = find(new, delimiter=delimiter, decimal=decimal, encoding=encoding)
        table = read(source, csv_types(training.roles, training.encoder))
        here = prepare_new(table, training.roles, training.encoder, training.y, source.name)
        voice.note(*here.remarks)
        X_new = here.X
    with voice.waiting("Checking"):
        diagnosis = model.diagnose(training.X, training.y, training.domain, X_new, level=level)
    voice.result(diagnosis.to_dict(), *_words(diagnosis))


def _words(diagnosis: Diagnosis) -> list[Line]:
    lines: list[Line] = []
    for result in diagnosis:
        lines.append(((result.check, "bold"), ": ", (result.verdict, _COLOURS[result.verdict])))
        question = QUESTIONS.get(result.check.removesuffix(", new domain"))
        lines += [] if question is None else [((f"  {question}", "dim"),)]
        lines.append(f"  {result.sentence}")
        if result.remedy:
            lines.append(f"  → {result.remedy}")
    if diagnosis.skipped:
        lines.append(
            f"not run without rows of a new domain: {', '.join(name for name, _ in diagnosis.skipped)}"
        )
    return lines
