"""Options that several commands share, in groups; what the TOML file may hold; costs as they are written.

A new option is one field of its group, and known to the TOML file, too.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np
import typer

from sfboost.adaptation import Settings
from sfboost.adaptation.costs import balanced_costs
from sfboost.adaptation.scores import check_metric
from sfboost.boosting import METRICS, StableFeatureBoosting
from sfboost.cli.console import Voice
from sfboost.marginal.probabilities import FloatArray
from sfboost.tables.reading import Source, find

#: Those of `sfboost.Settings` that the table [model] may set.
FITTING = ("method", "correction", "rounds", "l2", "standardize")
#: Parameters of the model that it may set.
MODEL_SETTINGS = (
    *("calibration", "calibration_bias", "calibration_weights", "validation_domain", "cv"),
    *(*FITTING, "transport", "n_jobs", "random_state"),
)
#: What an option is to be.
TEXT, NAMES, NUMBER, FLAG = "text", "text or a list of texts", "a number", "true or false"


def read_settings(path: Path, known: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the commands, lists of names as the command line writes them, and settings of the model.

    `known` are the options that there are, and what each is to be.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} is no TOML file: {error}.") from None
    model = values.pop("model", {})
    if not isinstance(model, dict):
        raise ValueError(f"{path} has model = {model!r}: settings of the model stand under the line [model].")
    options = {key.replace("-", "_"): value for key, value in values.items()}
    _refuse_unknown(options, known, f"{path} has")
    _refuse_unknown(model, MODEL_SETTINGS, f"[model] of {path} has")
    for key, value in options.items():
        if not _is_a(value, known[key]):
            raise ValueError(f"{path} has {key} = {_shown(value)}: it is to be {known[key]}.")
    for key, value in model.items():
        if not _is_a(value, TEXT) and not _is_a(value, NUMBER) and not _is_a(value, FLAG):
            raise ValueError(f"[model] of {path} has {key} = {_shown(value)}: it is to be one value.")
    return {key: ",".join(v) if isinstance(v, list) else v for key, v in options.items()}, model


def _is_a(value: Any, what: str) -> bool:
    if what == NAMES and isinstance(value, list):
        return all(isinstance(name, str) for name in value)
    if what in (TEXT, NAMES):
        return isinstance(value, str)
    if what == FLAG:
        return isinstance(value, bool)
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: Any) -> str:
    """A value as TOML writes it, as far as Python does the same."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _refuse_unknown(values: Iterable[str], known: Iterable[str], where: str) -> None:
    known = tuple(known)
    for key in values:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else f"; there are {', '.join(known)}"
            raise ValueError(f"{where} {key!r}, which is no setting{hint}.")


_META = "sfboost.model"


class AnswerName(StrEnum):
    """How careful the answer is; see `StableFeatureBoosting.adapt`."""

    best = "best"
    safe = "safe"
    paper = "paper"


TrainTable = Annotated[
    str, typer.Argument(metavar="TRAIN", help="Labelled rows: CSV, Parquet or Arrow; - is standard input.")
]
NewTable = Annotated[
    str,
    typer.Argument(
        metavar="NEW", help="Rows of one new domain: CSV, Parquet, Arrow or a folder; - is standard input."
    ),
]
Trusted = Annotated[
    str | None,
    typer.Option("--trusted", help="Types that the model file may hold beyond the known ones: full names."),
]
Also = Annotated[
    str | None,
    typer.Option(
        "--also",
        help="What to write beside the answer: pooled (all features as trained); stable is always there.",
    ),
]
Evaluate = Annotated[
    bool,
    typer.Option(
        "--evaluate/--no-evaluate", help="Let each training domain play the new one, for the report."
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(
        "--costs",
        help="TRUTH>DECISION=COST, comma-separated, e.g. 'sick>well=10'; other errors cost 1. Or 'balanced': "
        "missing a class costs more the rarer it is in training, as balanced accuracy counts. Predictions "
        "are then the classes of the least expected cost; where a model is fitted, answers are chosen by "
        "what they cost on own domains, too.",
    ),
]


@dataclass(frozen=True)
class ColumnOptions:
    """Which column of the training table is what."""

    target: Annotated[str, typer.Option("--target", help="Column with the class.")]
    domain: Annotated[
        str, typer.Option("--domain", help="Column that says where a row is from, e.g. hospital.")
    ]
    stable: Annotated[
        str | None,
        typer.Option(
            "--stable", help="Features to trust, comma-separated (word_* matches); 'auto' searches."
        ),
        NAMES,
    ] = None
    unstable: Annotated[
        str | None,
        typer.Option(
            "--unstable",
            help="Features that may change their meaning; by default all others. 'components' is for "
            "embeddings: directions of the new rows.",
        ),
        NAMES,
    ] = None
    id: Annotated[str | None, typer.Option("--id", help="Column that passes through to the predictions.")] = (
        None
    )
    drop: Annotated[str | None, typer.Option("--drop", help="Columns to leave out."), NAMES] = None
    categorical: Annotated[
        str | None,
        typer.Option("--categorical", help="Columns of numbers that are codes, not amounts."),
        NAMES,
    ] = None
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample", help="Fit to so many rows of each domain; TRAIN may be a folder, or exceed memory."
        ),
    ] = None


@dataclass(frozen=True)
class CsvOptions:
    """How tables are written, where they are CSV."""

    delimiter: Annotated[
        str | None, typer.Option("--delimiter", help="Of CSV columns; by default read off the header.")
    ] = None
    decimal: Annotated[str | None, typer.Option("--decimal", help="Decimal point of CSV numbers: . or ,")] = (
        None
    )
    encoding: Annotated[
        str | None,
        typer.Option("--encoding", help="Of CSV text, e.g. cp1252; by default read off its bytes."),
    ] = None

    def find(self, where: str) -> Source:
        """A table, found but not read."""
        return find(where, delimiter=self.delimiter, decimal=self.decimal, encoding=self.encoding)


@dataclass(frozen=True)
class AdaptOptions:
    """How to adapt, and what to show of it."""

    report: Annotated[
        Path | None, typer.Option("--report", help="Write the report: one HTML page that loads nothing.")
    ] = None
    card: Annotated[
        Path | None, typer.Option("--card", help="Write a model card: the report's facts as Markdown.")
    ] = None
    rows: Annotated[
        bool, typer.Option("--rows/--no-rows", help="Show examples of changed rows in the report, or none.")
    ] = True
    show_ids: Annotated[
        bool, typer.Option("--show-ids", help="Show the ids of those rows, too: they may name people.")
    ] = False
    answer: Annotated[
        AnswerName,
        typer.Option(
            "--answer",
            help="best: all features as trained, mended, boosted or the stable ones alone, as the training "
            "domains recommend; safe: adapt beyond doubt, or keep the stable ones; paper: adapt in any case.",
        ),
    ] = AnswerName.best
    leak: Annotated[
        float | None, typer.Option("--leak", help="The leak to allow for, in place of training's.")
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels", help="Column of NEW with the classes of some rows, empty elsewhere: they are used."
        ),
    ] = None
    require_adapted: Annotated[
        bool, typer.Option("--require-adapted", help="End with code 3 if the stable predictor was kept.")
    ] = False


@dataclass(frozen=True)
class ScoreOptions:
    """What counts."""

    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            help="What counts: own domains choose among answers by it, the guard of --answer safe judges by "
            f"it, and answers are compared by it. {', '.join(METRICS)}, or cost (with --costs, where it is "
            "the default); balanced_accuracy also decides so. By default answers are chosen by Brier score, "
            "and judged and compared by accuracy.",
        ),
    ] = None
    costs: Costs = None


@dataclass(frozen=True)
class StreamOptions:
    """How long tables and folders of them are read."""

    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            help="Who works on the blocks of a long table: here, or ray (RAY_ADDRESS names a cluster).",
        ),
    ] = None
    skip_unreadable: Annotated[
        bool, typer.Option("--skip-unreadable", help="Leave out what cannot be read of a folder, and say so.")
    ] = False


@dataclass(frozen=True)
class VoiceOptions:
    """How the command talks; `debug` is read by `console.speaking`."""

    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False

    def voice(self, *, to_pipe: bool = False) -> Voice:
        """The voice that was asked for."""
        return Voice(self.quiet, self.as_json, to_pipe)


def _kinds(group: type) -> dict[str, str]:
    """What the TOML file may hold for the options of a group: those that are no paths."""
    known = {bool: FLAG, int: NUMBER, float: NUMBER, str: TEXT, AnswerName: TEXT}
    kinds = {}
    for name, hint in get_type_hints(group, include_extras=True).items():
        told = get_args(hint)
        for part in (told[0], *get_args(told[0])):
            if part in known:
                kinds[name] = NAMES if NAMES in told else known[part]
    return kinds


#: Options that the TOML file may hold, and what each is to be.
FILE_OPTIONS = {
    **_kinds(ColumnOptions),
    **_kinds(CsvOptions),
    **_kinds(AdaptOptions),
    **_kinds(ScoreOptions),
    **_kinds(StreamOptions),
    **dict.fromkeys(("evaluate", "quiet"), FLAG),
    "also": NAMES,
    "show_domain": NAMES,
    "format": TEXT,
}


def _apply_config(context: typer.Context, path: Path | None) -> Path | None:
    if path is None:
        return None
    try:
        values, model = read_settings(path, FILE_OPTIONS)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    context.default_map = {**(context.default_map or {}), **values}
    context.meta[_META] = model
    return path


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="TOML file with any of these options and, under `model`, settings of the model.",
        callback=_apply_config,
        is_eager=True,
    ),
]


def make_model(context: typer.Context) -> StableFeatureBoosting:
    """The model as the TOML file sets it; columns are set when the table is known."""
    given: dict[str, Any] = context.meta.get(_META, {})
    settings = Settings(**{name: value for name, value in given.items() if name in FITTING})
    rest = {name: value for name, value in given.items() if name not in FITTING}
    return StableFeatureBoosting(**rest, settings=settings)


#: Costs that balanced accuracy counts.
BALANCED = "balanced"


def judged_by(model: StableFeatureBoosting, asked: ScoreOptions, y: Any) -> StableFeatureBoosting:
    """The model, unfitted, with the score that counts, and what wrong decisions among the classes cost."""
    classes, counts = np.unique(y, return_counts=True)
    costs = read_costs(asked.costs, classes, counts / counts.sum())
    if asked.metric is not None:
        model.set_params(settings__metric=check_metric(asked.metric, costs is not None))
    return model if costs is None else model.set_params(settings__costs=costs.tolist())


def read_costs(text: str | None, classes: Any, shares: FloatArray | None = None) -> FloatArray | None:
    """``costs[y, j]`` of deciding j where the truth is y; errors that are not named cost one.

    "balanced" are those whose mean is one minus balanced accuracy, where classes have these `shares` (even
    ones, if they are not told).

    Examples
    --------
    >>> shares = np.array([0.9, 0.1])
    >>> read_costs("yes>no=10", ["no", "yes"], shares)
    array([[ 0.,  1.],
           [10.,  0.]])
    >>> read_costs("balanced", ["no", "yes"], shares).round(2)
    array([[0.  , 0.56],
           [5.  , 0.  ]])
    """
    if text is None:
        return None
    names = [str(name) for name in np.asarray(classes).tolist()]
    costs = 1.0 - np.eye(len(names))
    if text.strip() == BALANCED:
        return costs if shares is None else balanced_costs(shares)
    # By the names themselves, which may hold any of the signs between them.
    name = f"({'|'.join(re.escape(name) for name in names)})"
    cost_of_error = re.compile(rf"\s*{name}\s*>\s*{name}\s*=\s*([0-9.eE+-]+)\s*(?:,|$)")
    start = 0
    while start < len(text):
        part = cost_of_error.match(text, start)
        cost = _number(part[3]) if part is not None else math.nan
        if part is None or part[1] == part[2] or not 0.0 <= cost < math.inf:
            raise ValueError(
                f"--costs {text[start:]!r} is not TRUTH>DECISION=COST with two of the classes "
                f"{', '.join(names)} and a number from 0 on: write for example "
                f"'{names[-1]}>{names[0]}=10', between quotes, or {BALANCED}."
            )
        costs[names.index(part[1]), names.index(part[2])] = cost
        start = part.end()
    return costs


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
