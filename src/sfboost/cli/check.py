"""`sfboost check`: the assumptions, and nothing else."""

from __future__ import annotations

from typing import Annotated

import typer

from sfboost.cli import options as o
from sfboost.cli.console import Line, speaking
from sfboost.cli.inputs import read_training
from sfboost.cli.project import stand_in_remarks, with_columns
from sfboost.diagnostics import CHECKS, Diagnosis
from sfboost.diagnostics.result import p_in_words
from sfboost.foreign_text import plain
from sfboost.frames.preparing import csv_types, prepare_new
from sfboost.frames.reading import read
from sfboost.report.words import SYMBOLS, in_words

_CHANGED = {"changed": "red", "unchanged": "green", "cannot tell": "dim"}
_COLOURS = {"holds": "green", "cannot tell": "dim", "doubtful": "yellow", "violated": "red"}


@speaking
def check(
    *,
    context: typer.Context,
    train: o.TrainTable,
    columns: o.ColumnOptions,
    new: Annotated[
        str | None, typer.Argument(metavar="NEW", help="Rows of a target domain, if there are any.")
    ] = None,
    csv: o.CsvOptions,
    config: o.Config = None,
    talk: o.VoiceOptions,
) -> None:
    """Check each assumption: its number, a verdict, and what to do. Nothing is adapted.

    With NEW it says first of each unstable feature whether it shifted there: changed, unchanged or cannot
    tell, and how much is left of what it said.
    """
    voice = talk.voice()
    training, _ = read_training(train, columns, csv)
    voice.note(*training.remarks)
    model, X_new = o.make_model(context), None
    if new is not None:
        source = csv.find(new)
        table = read(source, csv_types(training.roles, training.encoder))
        here = prepare_new(table, training.roles, training.encoder, training.y, source.name)
        voice.note(*here.remarks)
        X_new = here.X
    with voice.waiting("Checking"):
        rows = (training.X, training.y, training.domain, X_new)
        diagnosis, proposal = with_columns(training, model, lambda model: model.diagnose(*rows))
    voice.note(*stand_in_remarks(training.roles, proposal))
    voice.note(f"Symbols: {'; '.join(f'{symbol} ({meaning})' for symbol, meaning in SYMBOLS)}.")
    voice.result(diagnosis.to_dict(), *(_features(diagnosis) if new is not None else ()), *_words(diagnosis))


def _features(diagnosis: Diagnosis) -> list[Line]:
    """Has each unstable feature shifted? What the new rows say, first."""
    if not diagnosis.meanings:
        return [
            "Whether a feature shifted cannot be told: that needs two source domains of ten rows or more."
        ]
    lines: list[Line] = [(("has each unstable feature shifted?", "bold"),)]
    width = max(len(plain(one.name)) for one in diagnosis.meanings)
    for one in diagnosis.meanings:
        left = f"  left of what it said: {100 * one.left:.0f} %, {p_in_words(one.p_value)}"
        told = one.verdict != "cannot tell"
        pad = " " * (11 - len(one.verdict))
        lines.append(
            (f"  {plain(one.name):<{width}}  ", (one.verdict, _CHANGED[one.verdict]), pad + left * told)
        )
    return lines


def _words(diagnosis: Diagnosis) -> list[Line]:
    lines: list[Line] = []
    for result in diagnosis:
        lines.append(((result.check, "bold"), ": ", (result.verdict, _COLOURS[result.verdict])))
        lines += [((f"  {check.question}", "dim"),) for check in CHECKS if check.name == result.check]
        lines.append(f"  {result.sentence}")
        if result.remedy:
            lines.append(f"  → {in_words(result.remedy)}")
    if diagnosis.skipped:
        lines.append(
            f"not run without rows of a target domain: {'; '.join(name for name, _ in diagnosis.skipped)}"
        )
    return lines
