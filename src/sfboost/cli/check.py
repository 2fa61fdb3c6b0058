"""`sfboost check`: the assumptions, and nothing else."""

from __future__ import annotations

from typing import Annotated

import typer

from sfboost.cli import options as o
from sfboost.cli.console import Line, speaking
from sfboost.cli.inputs import read_training
from sfboost.cli.project import configure
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
        str | None, typer.Argument(metavar="NEW", help="Rows of one new domain, if there are any.")
    ] = None,
    csv: o.CsvOptions,
    config: o.Config = None,
    talk: o.VoiceOptions,
) -> None:
    """Check each assumption: its number, a verdict, and what to do. Nothing is adapted.

    With NEW it says first of each unstable feature whether it means there what it meant in training: changed,
    unchanged or cannot tell, and how much of its meaning is left.
    """
    voice = talk.voice()
    training, _ = read_training(train, columns, csv)
    voice.note(*training.remarks)
    model, X_new = configure(training, o.make_model(context)), None
    if new is not None:
        source = csv.find(new)
        table = read(source, csv_types(training.roles, training.encoder))
        here = prepare_new(table, training.roles, training.encoder, training.y, source.name)
        voice.note(*here.remarks)
        X_new = here.X
    with voice.waiting("Checking"):
        diagnosis = model.diagnose(training.X, training.y, training.domain, X_new)
    voice.note(f"Symbols: {'; '.join(f'{symbol} ({meaning})' for symbol, meaning in SYMBOLS)}.")
    voice.result(diagnosis.to_dict(), *_meanings(diagnosis, asked=new is not None), *_words(diagnosis))


def _meanings(diagnosis: Diagnosis, *, asked: bool) -> list[Line]:
    """Has each unstable feature kept its meaning? What the new rows say, first."""
    if not asked:
        return []
    if not diagnosis.meanings:
        return [
            "Whether a meaning changed cannot be told: that needs two training domains of ten rows or more."
        ]
    lines: list[Line] = [(("do the unstable features mean here what they meant in training?", "bold"),)]
    width = max(len(plain(meaning.name)) for meaning in diagnosis.meanings)
    for meaning in diagnosis.meanings:
        told = (meaning.verdict, _CHANGED[meaning.verdict])
        left = f"  {100 * meaning.left:>4.0f} % of its meaning left, {p_in_words(meaning.p_value)}"
        pad = " " * (11 - len(meaning.verdict))
        lines.append((f"  {plain(meaning.name):<{width}}  ", told, pad + left * (told[0] != "cannot tell")))
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
            f"not run without rows of a new domain: {'; '.join(name for name, _ in diagnosis.skipped)}"
        )
    return lines
