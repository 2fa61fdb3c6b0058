"""`sfboost info`: what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline

import sfboost
from sfboost.boosting import AdaptedClassifier, StableFeatureBoosting
from sfboost.cli import options as o
from sfboost.cli.console import speaking
from sfboost.frames.roles import split
from sfboost.notices import first_names
from sfboost.persistence import SavedModelError
from sfboost.persistence.saving import read_manifest

# Longer lists of names are cut.
_MOST_NAMES = 30


@speaking
def info(
    *,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file, from the command or from `save` in Python.")
    ],
    trusted: o.Trusted = None,
    talk: o.VoiceOptions,
) -> None:
    """Say what is in a model file: what made it, its classes, features, domains and decision."""
    voice = talk.voice()
    if not model.exists():
        raise ValueError(f"There is no file {model}: check the name.")
    manifest = read_manifest(model)
    found: dict[str, Any] = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "kind": manifest["kind"],
        "written_by": manifest["versions"],
    }
    try:
        found |= _contents(sfboost.load(model, trusted=split(trusted)))
    except (SavedModelError, ImportError) as error:
        # What wrote it is worth knowing, all the more where it cannot be loaded.
        voice.note(str(error))
    except Exception as error:  # it loads, and holds what no model does
        voice.note(f"{model} is damaged or forged: what is in it cannot be told ({error!r}).")
    voice.result(found, *(f"{key.replace('_', ' ')}: {_words(value)}" for key, value in found.items()))


def _contents(loaded: Any) -> dict[str, Any]:
    adapted = loaded if isinstance(loaded, AdaptedClassifier) else None
    model = loaded if adapted is None else adapted.model
    known: dict[str, Any] = {}
    classes = getattr(loaded, "classes_", getattr(loaded, "classes", None))
    if classes is not None:
        known["classes"] = np.asarray(classes).tolist()
    if isinstance(model, StableFeatureBoosting):
        known |= _of_columns(model)
    if adapted is None:
        return known | {"adapted": False}
    rows = adapted.adaptation
    return known | {
        "adapted": f"to {rows.n_rows} rows, {rows.n_labelled} of them labelled",
        "decision": adapted.decision_,
        "reason": str(adapted.reason_),
        "class_shares": dict(zip(map(str, adapted.classes_), adapted.prior_.tolist(), strict=True)),
    }


def _of_columns(model: StableFeatureBoosting) -> dict[str, Any]:
    classifier = model.stable_[-1] if isinstance(model.stable_, Pipeline) else model.stable_
    known: dict[str, Any] = {
        "stable_features": list(model.stable_columns_.sources),
        "unstable_features": list(model.unstable_columns_.sources or model.unstable_columns_.names),
        "stable_classifier": type(classifier).__name__,
        "source_domains": {str(domain.name): domain.n_rows for domain in model.domains_},
    }
    costs, names = model._costs(), model.classes_.tolist()
    if costs is not None:
        known["costs"] = {
            f"{truth}>{decision}": float(costs[i, j])
            for i, truth in enumerate(names)
            for j, decision in enumerate(names)
            if i != j
        }
    roles = getattr(model, "table_", {}).get("roles", {})
    return known | {name: roles[name] for name in ("target", "domain", "id") if roles.get(name)}


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {f'{v:.3f}' if isinstance(v, float) else v}" for k, v in value.items())
    if isinstance(value, list):
        return first_names(value, _MOST_NAMES)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
