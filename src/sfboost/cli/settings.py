"""The TOML file that may hold options of the commands and settings of the model."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

#: Those of `sfboost.Settings` that the table [model] may set.
FITTING = ("method", "correction", "rounds", "l2", "standardize")
#: Parameters of the model that it may set.
MODEL_SETTINGS = (
    *("calibration", "calibration_bias", "calibration_weights", "validation_domain", "cv"),
    *(*FITTING, "transport", "play", "n_jobs", "random_state"),
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
