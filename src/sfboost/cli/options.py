"""Options that several commands share, in groups; what the TOML file may hold; costs as they are written.

A new option is one field of its group, and known to the TOML file, too.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from sklearn.ensemble import HistGradientBoostingClassifier

from sfboost.adaptation import Settings
from sfboost.adaptation.scores import check_metric
from sfboost.boosting import METRICS, StableFeatureBoosting
from sfboost.cli.console import Voice
from sfboost.frames.reading import Source, find
from sfboost.marginal.probabilities import FloatArray

#: Those of `sfboost.Settings` that the table [model] may set.
FITTING = ("method", "correction", "rounds", "l2", "standardize")
#: Parameters of the model that it may set.
MODEL_SETTINGS = (
    *("calibration", "calibration_bias", "calibration_weights", "validation_domain", "cv"),
    *(*FITTING, "transport", "n_jobs", "random_state"),
)


def read_settings(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the commands, lists of names as the command line writes them, and settings of the model."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no TOML file: {error}.") from None
    model = values.pop("model", {})
    if not isinstance(model, dict):
        raise ValueError(f"{path} has model = {model!r}: settings of the model stand under the line [model].")
    options = {key.replace("-", "_"): value for key, value in values.items()}
    _refuse_unknown(options, FILE_OPTIONS, f"{path} has")
    _refuse_unknown(model, MODEL_SETTINGS, f"[model] of {path} has")
    for key, value in (options | model).items():
        is_list = key not in model and isinstance(value, list) and all(isinstance(v, str) for v in value)
        if not is_list and not isinstance(value, str | int | float):
            raise ValueError(f"{path} has {key} = {value!r}: it is to be one value, or a list of names.")
    return {key: ",".join(v) if isinstance(v, list) else v for key, v in options.items()}, model


def _refuse_unknown(values: Iterable[str], known: Collection[str], where: str) -> None:
    for key in values:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else f"; there are {', '.join(known)}"
            raise ValueError(f"{where} {key!r}, which is no setting{hint}.")


_META = "sfboost.model"


Text = str | None
_FILES = "CSV, Parquet or Arrow"


def option(help: str, *names: str) -> Any:
    """An option that is called as its parameter is, or by the names."""
    return typer.Option(*names, help=help)


TrainTable = Annotated[
    str, typer.Argument(metavar="TRAIN", help=f"Labelled rows: {_FILES}; - is standard input.")
]
NewTable = Annotated[
    str,
    typer.Argument(
        metavar="NEW", help=f"Rows of a target domain: {_FILES}, or a folder; - is standard input."
    ),
]
Trusted = Annotated[Text, option("Types that the model file may hold beyond the known ones: full names.")]
Evaluate = Annotated[bool, option("Also leave each source domain out in turn, for the report.")]
Costs = Annotated[
    Text,
    option(
        "TRUTH>DECISION=COST, comma-separated, e.g. 'sick>well=10'; other errors cost 1. Predictions are "
        "then the classes of the least expected cost."
    ),
]


@dataclass(frozen=True)
class ColumnOptions:
    """Which column of the training table is what."""

    target: Annotated[str, option("Column with the class.")]
    domain: Annotated[str, option("Column that says where a row is from, e.g. hospital.")]
    stable: Annotated[
        Text,
        option(
            "Features to trust, comma-separated (word_* matches); 'auto' searches, and so does naming none."
        ),
    ] = None
    unstable: Annotated[
        Text,
        option(
            "Features that may shift; by default all others. 'components' is for embeddings: directions of "
            "the new rows."
        ),
    ] = None
    id: Annotated[Text, option("Column that passes through to the predictions.")] = None
    drop: Annotated[Text, option("Columns to leave out.")] = None
    categorical: Annotated[Text, option("Columns of numbers that are codes, not amounts.")] = None


@dataclass(frozen=True)
class CsvOptions:
    """How tables are written, where they are CSV."""

    delimiter: Annotated[Text, option("Of CSV columns; by default read off the header.")] = None
    decimal: Annotated[Text, option("Decimal point of CSV numbers: . or ,")] = None
    encoding: Annotated[Text, option("Of CSV text, e.g. cp1252; by default read off its bytes.")] = None

    def find(self, where: str) -> Source:
        """A table, found but not read."""
        return find(where, delimiter=self.delimiter, decimal=self.decimal, encoding=self.encoding)


@dataclass(frozen=True)
class AdaptOptions:
    """How to adapt, and what to show of it."""

    report: Annotated[Path | None, option("Write the report: one HTML page that loads nothing.")] = None
    rows: Annotated[bool, option("Show examples of changed rows in the report, or none.")] = True
    answer: Annotated[
        Literal["best", "safe"],
        option("best: what the rows support; safe: the stable features alone where that is in doubt."),
    ] = "best"
    labels: Annotated[
        Text, option("Column of NEW with the classes of some rows, empty elsewhere: they are used.")
    ] = None
    require_adapted: Annotated[
        bool, option("End with code 3 if the stable features alone answer.", "--require-adapted")
    ] = False


@dataclass(frozen=True)
class ScoreOptions:
    """What counts."""

    metric: Annotated[
        Text,
        option(
            f"By what answers are compared: {', '.join(METRICS)}, or cost (with --costs, where it is the "
            "default); balanced_accuracy also decides so. Accuracy by default."
        ),
    ] = None
    costs: Costs = None
    learner: Annotated[
        Literal["linear", "boosting", "auto"],
        option(
            "What is fitted to all columns: linear (logistic regression), boosting (histogram boosting of "
            "trees), or auto: both, mixed by source domains that are left out in turn."
        ),
    ] = "linear"


@dataclass(frozen=True)
class StreamOptions:
    """How long tables and folders of them are read."""

    engine: Annotated[
        Text, option("Who works on the blocks of a long table: here, or ray (RAY_ADDRESS names a cluster).")
    ] = None
    skip_unreadable: Annotated[
        bool, option("Leave out what cannot be read of a folder, and say so.", "--skip-unreadable")
    ] = False


@dataclass(frozen=True)
class VoiceOptions:
    """How the command talks; `debug` is read by `console.speaking`."""

    as_json: Annotated[bool, option("One JSON object on standard output.", "--json")] = False
    quiet: Annotated[bool, option("Say nothing but errors.", "--quiet", "-q")] = False
    debug: Annotated[bool, option("Show the traceback of an error.", "--debug")] = False

    def voice(self, *, to_pipe: bool = False) -> Voice:
        """The voice that was asked for."""
        return Voice(self.quiet, self.as_json, to_pipe)


_GROUPS = (ColumnOptions, CsvOptions, AdaptOptions, ScoreOptions, StreamOptions)
#: Options that the TOML file may hold.
FILE_OPTIONS = (*(one.name for group in _GROUPS for one in fields(group)), "evaluate", "quiet")


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
    """The model as the TOML file has it; columns are set when the table is known."""
    given: dict[str, Any] = context.meta.get(_META, {})
    settings = Settings(**{name: value for name, value in given.items() if name in FITTING})
    rest = {name: value for name, value in given.items() if name not in FITTING}
    return StableFeatureBoosting(**rest, settings=settings)


def judged_by(model: StableFeatureBoosting, asked: ScoreOptions, y: Any) -> StableFeatureBoosting:
    """The model, unfitted, with its learner, the score that counts, and what wrong decisions cost."""
    boosting = HistGradientBoostingClassifier(random_state=model.random_state)
    model.set_params(learner={"linear": None, "boosting": boosting, "auto": "auto"}[asked.learner])
    costs = read_costs(asked.costs, np.unique(y))
    if asked.metric is not None:
        model.set_params(settings__metric=check_metric(asked.metric, costs is not None))
    return model if costs is None else model.set_params(settings__costs=costs.tolist())


def read_costs(text: str | None, classes: Any) -> FloatArray | None:
    """``costs[y, j]`` of deciding j where the truth is y; errors that are not named cost one.

    Examples
    --------
    >>> read_costs("yes>no=10", ["no", "yes"])
    array([[ 0.,  1.],
           [10.,  0.]])
    """
    if text is None:
        return None
    names = [str(name) for name in np.asarray(classes).tolist()]
    costs = 1.0 - np.eye(len(names))
    # By the names themselves, which may hold any of the signs between them.
    name = f"({'|'.join(re.escape(name) for name in names)})"
    cost_of_error = re.compile(rf"\s*{name}\s*>\s*{name}\s*=\s*(\d+\.?\d*([eE][+-]?\d+)?)\s*(?:,|$)")
    start = 0
    while start < len(text):
        part = cost_of_error.match(text, start)
        if part is None or part[1] == part[2] or not math.isfinite(float(part[3])):
            raise ValueError(
                f"--costs {text[start:]!r} is not TRUTH>DECISION=COST with two of the classes "
                f"{', '.join(names)} and a number from 0 on: write for example "
                f"'{names[-1]}>{names[0]}=10', between quotes."
            )
        costs[names.index(part[1]), names.index(part[2])] = float(part[3])
        start = part.end()
    return costs
