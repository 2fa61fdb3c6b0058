"""`sfboost explain`: why one row gets its prediction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from sfboost.adaptation import Explanation
from sfboost.adaptation.explanation import MISSING
from sfboost.cli import options as o
from sfboost.cli.console import speaking
from sfboost.cli.project import Project, load_project
from sfboost.foreign_text import plain
from sfboost.frames.preparing import csv_types
from sfboost.frames.reading import read
from sfboost.frames.roles import require_columns, split
from sfboost.marginal.probabilities import FloatArray


@speaking
def explain(
    *,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that `sfboost adapt` wrote.")],
    new: o.NewTable,
    row: Annotated[
        int | None, typer.Option("--row", help="Which row; the first one below the header is 1.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="Which row, by its value in the id column.")] = None,
    csv: o.CsvOptions,
    trusted: o.Trusted = None,
    talk: o.VoiceOptions,
) -> None:
    """Show why one row gets its prediction: what each feature adds, by class.

    A feature adds what the answer would lack if the feature were what training expects. Where the unstable
    features were learned anew (SFB) the terms are log stable + log unstable - log prior. The baseline is what
    remains if every feature above it adds nothing. A cell that is missing is filled in, and says "missing".
    """
    voice = talk.voice()
    project = load_project(model, split(trusted))
    adapted = project.require_adapted()
    source = csv.find(new)
    table = read(source, csv_types(project.roles, project.encoder))
    require_columns(table.column_names, project.encoder.sources, source.name)
    number = _position(table, source.name, project, row, id)
    cells = table.slice(number - 1, 1)
    explanation = replace(adapted.explain(cells), cells=project.encoder.cells(cells))
    voice.result(
        {"row": number, "decision": adapted.decision_} | _values(explanation),
        (f"row {number}: ", (str(explanation.prediction), "bold"), f" ({adapted.decision_})"),
        *_table(explanation),
    )


def _position(table: pa.Table, name: str, project: Project, row: int | None, id: str | None) -> int:
    if (row is None) == (id is None):
        raise ValueError("Which row? Say --row NUMBER or --id VALUE; not both.")
    if row is not None:
        if not 1 <= row <= table.num_rows:
            raise ValueError(f"There is no row {row}: {name} has rows 1 to {table.num_rows}.")
        return row
    if project.roles.id is None:
        raise ValueError("The model knows no id column: use --row, or fit with --id COLUMN.")
    require_columns(table.column_names, [project.roles.id], name)
    found = pc.index(table.column(project.roles.id).cast(pa.string()), id).as_py()
    if found < 0:
        raise ValueError(f"No row of {name} has {project.roles.id} = {id!r}.")
    return int(found) + 1


def _table(explanation: Explanation) -> list[str]:
    # Of several lines: a line break in a name must not make one more.
    classes = [plain(str(name)) for name in np.asarray(explanation.classes).tolist()]
    shown = replace(
        explanation,
        classes=np.array(classes, dtype=object),
        feature_names=tuple(map(plain, explanation.feature_names)),
        stable_names=tuple(map(plain, explanation.stable_names)),
        cells={plain(name): plain(cell) for name, cell in explanation.cells.items()},
    )
    return str(shown).split("\n")


def _values(explanation: Explanation) -> dict[str, object]:
    def terms(names: tuple[str, ...], added: FloatArray | None) -> dict[str, FloatArray]:
        return {} if added is None else dict(zip(names, added, strict=True))

    return {
        "prediction": explanation.prediction,
        "classes": explanation.classes,
        "log_probability": explanation.joint,
        "log_stable": explanation.stable,
        "log_unstable": explanation.unstable,
        "log_prior": explanation.prior,
        "stable_features": terms(explanation.stable_names, explanation.stable_features),
        "features": terms(explanation.feature_names, explanation.features),
        "baseline": explanation.baseline,
        "missing": [name for name, cell in explanation.cells.items() if cell == MISSING],
    }
