"""Tables and figures as files, and one page that shows them all and loads nothing from outside."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from sfboost.whole_files import write_whole
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.overview import best_of, in_one_line
from sfboost_lab.experiments.record import Record
from sfboost_lab.experiments.rendering import FORMATS, chosen_by, label, to_text, words
from sfboost_lab.experiments.tables import Table


def write_tables(
    experiment: Experiment,
    tables: Sequence[Table],
    records: Mapping[str, Record],
    out: Path,
    *,
    quick: bool = False,
) -> list[Path]:
    """Write the tables in every format and the figure; return the files."""
    stem = experiment.name + ("-quick" if quick else "")
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix in FORMATS:
        path = out / f"{stem}.{suffix}"
        write_whole(path, to_text(tables, suffix, quick=quick).encode())
        written.append(path)
    if experiment.figure is not None:
        good = {name: record for name, record in records.items() if record.ok}
        written.append(experiment.figure(good, out / f"{stem}.png"))
    return written


def write_page(
    experiments: Sequence[Experiment], records: Mapping[str, Record], out: Path, *, quick: bool = False
) -> Path:
    """Write ``index.html``: a summary, then every experiment's figure and tables."""
    from jinja2 import Environment

    parts = []
    for experiment in experiments:
        own = {i: r for i, r in experiment.own(records, quick=quick).items() if r.ok}
        figure = out / f"{experiment.name}{'-quick' if quick else ''}.png"
        tables = experiment.tables(own)
        parts.append(
            {
                "name": experiment.name,
                "summary": experiment.summary,
                "line": in_one_line(tables),
                "tables": tables,
                "figure": base64.b64encode(figure.read_bytes()).decode() if figure.exists() else None,
            }
        )
    source = (files("sfboost_lab.experiments") / "page.html.j2").read_text(encoding="utf-8")
    template = Environment(autoescape=True).from_string(source)
    page = template.render(
        parts=parts, quick=quick, label=label, words=words, chosen_by=chosen_by, best_of=best_of
    )
    path = out / "index.html"
    write_whole(path, page.encode())
    return path
