"""The TOML file that may hold options of the commands and settings of the model."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

#: Those of `sfboost.Settings` that the table [model] may set.
FITTING = ("method", "correction", "rounds", "l2", "standardize")
#: Parameters of the model that it may set.
MODEL_SETTINGS = (
    *("calibration", "calibration_bias", "calibration_weights", "validation_domain", "cv"),
    *(*FITTING, "transport", "n_jobs", "random_state"),
)
_TEXT, _NAMES, _NUMBER, _FLAG = "text", "text or a list of texts", "a number", "true or false"
#: Options of the commands, and what each is to be.
OPTIONS = {
    **dict.fromkeys(("target", "domain", "id", "delimiter", "decimal", "encoding", "answer"), _TEXT),
    **dict.fromkeys(("stable", "unstable", "drop", "categorical"), _NAMES),
    "leak": _NUMBER,
    **dict.fromkeys(("evaluate", "rows", "require_adapted", "quiet"), _FLAG),
}


def read_settings(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the commands, lists of names as the command line writes them, and settings of the model."""
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
    _refuse_unknown(options, OPTIONS, f"{path} has")
    _refuse_unknown(model, MODEL_SETTINGS, f"[model] of {path} has")
    for key, value in options.items():
        if not _is_a(value, OPTIONS[key]):
            raise ValueError(f"{path} has {key} = {_shown(value)}: it is to be {OPTIONS[key]}.")
    for key, value in model.items():
        if not _is_a(value, _TEXT) and not _is_a(value, _NUMBER) and not _is_a(value, _FLAG):
            raise ValueError(f"[model] of {path} has {key} = {_shown(value)}: it is to be one value.")
    return {key: ",".join(v) if isinstance(v, list) else v for key, v in options.items()}, model


def _is_a(value: Any, what: str) -> bool:
    if what == _NAMES and isinstance(value, list):
        return all(isinstance(name, str) for name in value)
    if what in (_TEXT, _NAMES):
        return isinstance(value, str)
    if what == _FLAG:
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
