"""`sfboost export`: a model file in, coefficients that other tools read out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfboost.cli import options as o
from sfboost.cli.collisions import refuse_collisions
from sfboost.cli.console import speaking
from sfboost.cli.files import load_project
from sfboost.export import linear_scorer, to_json, to_onnx
from sfboost.tables.roles import split
from sfboost.whole_files import write_whole


@speaking
def export(
    *,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file that `sfboost adapt` (or `fit`) wrote.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File to write: a name ending in .onnx or .json.")
    ],
    trusted: o.Trusted = None,
    talk: o.VoiceOptions,
) -> None:
    """Write a linear model for other tools: an ONNX graph, or plain JSON.

    Either takes the encoded features, in the order that the file says.
    """
    voice = talk.voice()
    if output.suffix not in (".onnx", ".json"):
        raise ValueError(f"{output} says no format that is known: call it .onnx or .json.")
    refuse_collisions({"MODEL": model}, {"-o": output})
    project = load_project(model, split(trusted))
    what = project.model if project.adapted is None else project.adapted
    output.parent.mkdir(parents=True, exist_ok=True)
    if output.suffix == ".onnx":
        to_onnx(what, output)
    else:
        write_whole(output, to_json(what).encode())
    features = linear_scorer(what).features
    voice.result(
        {"features": list(features), "file": str(output)},
        f"features, in this order: {', '.join(features)}",
        f"exported: {output}",
    )
