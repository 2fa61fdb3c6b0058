"""`sfboost monitor`: a batch every month, a line of history each, and labels that come later."""

from __future__ import annotations

from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from sfboost.boosting.monitoring import LEVEL, History, Scored, look_at, score_late
from sfboost.cli import options as o
from sfboost.cli.console import CANNOT_TELL, SHIFTED, Line, Voice, speaking
from sfboost.cli.inputs import read_new, refuse_collisions
from sfboost.cli.outcome import today, write_page
from sfboost.cli.project import load_project
from sfboost.frames.roles import split
from sfboost.report.months import render_months


@speaking
def monitor(
    *,
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that `sfboost fit` wrote.")],
    new: o.NewTable,
    history: Annotated[Path, typer.Option("--history", help="File of all batches: a line is added to it.")],
    labels: Annotated[
        bool,
        typer.Option(
            "--labels", help="NEW is a batch of the history again, now with its labels: score what was said."
        ),
    ] = False,
    name: Annotated[str | None, typer.Option("--name", help="Of the batch; by default NEW's file.")] = None,
    alarm: Annotated[
        bool,
        typer.Option(
            "--alarm",
            help="End with code 4 once all batches together say that something shifted, 5 if this "
            "batch cannot tell.",
        ),
    ] = False,
    report: Annotated[Path | None, typer.Option("--report", help="Page of all batches to write.")] = None,
    stream: o.StreamOptions,
    csv: o.CsvOptions,
    trusted: o.Trusted = None,
    talk: o.VoiceOptions,
) -> None:
    """Look at a batch of unlabelled rows: adapt to it afresh, add a line to the history, say what moved.

    Each batch is tested by itself, so that one in twenty looks shifted by chance. The alarm is of all
    batches together: without a shift it is ever given with probability .05 at most.
    """
    voice = talk.voice()
    refuse_collisions({"MODEL": model, "NEW": new}, {"--history": history, "--report": report})
    project, kept = load_project(model, split(trusted)), History.read(history)
    found = read_new(new, project.roles, project.encoder, csv, stream)
    rows = found.prepare(project)
    if labels:
        if rows.y is None:
            raise ValueError(f"{found.name} has no column {project.roles.target!r}: add the labels.")
        with voice.waiting("Scoring"):
            _tell_scores(voice, score_late(project.model, kept, rows.X, rows.y))
        return
    with voice.waiting("Adapting"):
        digest = sha256(model.read_bytes()).hexdigest()[:16]
        batch, _ = look_at(project.model, rows.X, name or found.name, digest)
    kept.add(batch)
    kept.write(history)
    written = {"history": str(history)}
    if report is not None:
        page = render_months(kept, model.name, today(), context.find_root().obj)
        written["report"] = write_page(report, page)
    voice.note(*found.remarks, *rows.remarks)
    said = asdict(batch) | {"evidence": kept.evidence[-1], "alarm": kept.alarm, "files": written}
    voice.result(said, *_lines(kept), *(f"{what}: {path}" for what, path in written.items()))
    if alarm and kept.alarm:
        raise typer.Exit(SHIFTED)
    if alarm and batch.code == "cannot_tell":
        raise typer.Exit(CANNOT_TELL)


def _lines(kept: History) -> list[Line]:
    """The batch in few lines, and what all batches say."""
    batch, evidence = kept.batches[-1], kept.evidence[-1]
    lines: list[Line] = [((batch.decision, "bold"), f": {batch.name}, {batch.rows} rows"), batch.reason]
    if batch.estimated is not None:
        value, low, high = (100 * part for part in batch.estimated)
        lines.append(f"estimated accuracy of the answer: {value:.0f} % ({low:.0f} to {high:.0f})")
    if batch.inputs:
        far = max(batch.inputs, key=lambda one: abs(batch.inputs[one]))
        lines.append(
            f"mean that moved farthest: {far}, {batch.inputs[far]:+.1f} standard deviations of training"
        )
    told = f"all {len(kept.batches)} batches: evidence of a shift {evidence:.2g}, {1 / LEVEL:.0f} is an alarm"
    lines.append(((f"{told}; ALARM", "bold red"),) if kept.alarm else told)
    return lines


def _tell_scores(voice: Voice, scored: Scored) -> None:
    every = ", ".join(f"{name} {100 * value:.1f} %" for name, value in scored.accuracy.items())
    lines: list[Line] = [f"{scored.name}, {scored.rows} labels: accuracy {every}"]
    if scored.estimated is not None:
        value, low, high = (100 * part for part in scored.estimated)
        inside = low <= 100 * scored.accuracy["answer"] <= high
        lines.append(
            f"estimated then: {value:.0f} % ({low:.0f} to {high:.0f}), which "
            f"{'holds' if inside else 'does not hold'} the truth"
        )
    gain, error = 100 * scored.gain_of_labels, 100 * scored.error
    lines.append(f"X_U learned from these labels would have gained {gain:+.1f} ± {error:.1f} points (ORACLE)")
    lines.append(
        "retrain: add these rows to the source domains and fit again"
        if scored.retrain
        else "no need to retrain: these labels would not have helped clearly"
    )
    voice.result(asdict(scored) | {"retrain": scored.retrain}, *lines)
