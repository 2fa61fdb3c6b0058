"""Options that several commands share; a TOML file may hold them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sfboost.adaptation import Settings
from sfboost.boosting import StableFeatureBoosting
from sfboost.cli.settings import FITTING, read_settings

_META = "sfboost.model"


def _apply_config(context: typer.Context, path: Path | None) -> Path | None:
    if path is None:
        return None
    try:
        values, model = read_settings(path)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    context.default_map = {**(context.default_map or {}), **values}
    context.meta[_META] = model
    return path


def make_model(context: typer.Context) -> StableFeatureBoosting:
    """The model as the TOML file sets it; columns are set when the table is known."""
    given = context.meta.get(_META, {})
    settings = Settings(**{name: value for name, value in given.items() if name in FITTING})
    rest = {name: value for name, value in given.items() if name not in FITTING}
    return StableFeatureBoosting(**rest, settings=settings)


class AnswerName(StrEnum):
    """How careful the answer is; see `StableFeatureBoosting.adapt`."""

    safe = "safe"
    paper = "paper"


TrainTable = Annotated[str, typer.Argument(help="Labelled rows: CSV, Parquet or Arrow; - is standard input.")]
NewTable = Annotated[
    str, typer.Argument(help="Rows of one new domain: CSV, Parquet or Arrow; - is standard input.")
]
Target = Annotated[str, typer.Option("--target", help="Column with the class.")]
Domain = Annotated[str, typer.Option("--domain", help="Column that says where a row is from, e.g. hospital.")]
Stable = Annotated[
    str | None,
    typer.Option("--stable", help="Features to trust, comma-separated (word_* matches); 'auto' searches."),
]
Unstable = Annotated[
    str | None,
    typer.Option("--unstable", help="Features that may change their meaning; by default all others."),
]
Id = Annotated[str | None, typer.Option("--id", help="Column that passes through to the predictions.")]
Drop = Annotated[str | None, typer.Option("--drop", help="Columns to leave out.")]
Categorical = Annotated[
    str | None, typer.Option("--categorical", help="Columns of numbers that are codes, not amounts.")
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Of CSV columns; by default read off the header.")
]
Decimal = Annotated[str | None, typer.Option("--decimal", help="Decimal point of CSV numbers: . or ,")]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Of CSV text, e.g. cp1252; by default read off its bytes.")
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="TOML file with any of these options and, under `model`, settings of the model.",
        callback=_apply_config,
        is_eager=True,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Trusted = Annotated[
    str | None,
    typer.Option("--trusted", help="Types that the model file may hold beyond the known ones: full names."),
]
Report = Annotated[
    Path | None, typer.Option("--report", help="Write the report: one HTML page that loads nothing.")
]
Card = Annotated[
    Path | None, typer.Option("--card", help="Write a model card: the report's facts as Markdown.")
]
Rows = Annotated[
    bool, typer.Option("--rows/--no-rows", help="Show examples of changed rows in the report, or none.")
]
Answer = Annotated[
    AnswerName,
    typer.Option(
        "--answer",
        help="safe: allow for the leak seen in training, keep what is in doubt; paper: adapt whatever it is.",
    ),
]
Leak = Annotated[float | None, typer.Option("--leak", help="The leak to allow for, in place of training's.")]
RequireAdapted = Annotated[
    bool, typer.Option("--require-adapted", help="End with code 3 if the stable predictor was kept.")
]
Evaluate = Annotated[
    bool,
    typer.Option(
        "--evaluate/--no-evaluate", help="Let each training domain play the new one, for the report."
    ),
]
