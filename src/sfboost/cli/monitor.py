"""`sfboost monitor`: a batch every month, a line of history each, and labels that come later."""

from __future__ import annotations

from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from sfboost.adaptation.scores import METRIC_NAMES, shown
from sfboost.boosting.monitoring import LEVEL, History, MonitoredBatch, Scored, look_at, score_late
from sfboost.cli import options as o
from sfboost.cli.console import CANNOT_TELL, SHIFTED, Line, Voice, speaking
from sfboost.cli.inputs import read_new, refuse_collisions
from sfboost.cli.outcome import today, write_page
from sfboost.cli.project import load_project
from sfboost.frames.roles import split
from sfboost.report.months import render_months

# A mean that moved by less, in standard deviations, moved little (Cohen's convention), and is not shown.
_SMALL = 0.2


@speaking
def monitor(
    *,
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that `sfboost fit` wrote.")],
    new: o.NewTable,
    history: Annotated[
        Path, typer.Option("--history", help="File with a line for each batch; this one is added.")
    ],
    labels: Annotated[
        bool,
        typer.Option(
            "--labels", help="NEW is a batch of the history again, now with its labels: score the answer."
        ),
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the batch; by default that of NEW's file.")
    ] = None,
    alarm: Annotated[
        bool,
        typer.Option(
            "--alarm",
            help="End with code 4 once the alarm is given, 5 if this batch is too small to tell.",
        ),
    ] = False,
    report: Annotated[Path | None, typer.Option("--report", help="Write a page of all batches.")] = None,
    stream: o.StreamOptions,
    csv: o.CsvOptions,
    trusted: o.Trusted = None,
    talk: o.VoiceOptions,
) -> None:
    """Look at a batch of unlabelled rows: adapt to it afresh, say what moved, add a line to the history.

    Each batch has a test of its own, by which one in twenty looks shifted by chance. The alarm adds up the
    evidence of all batches: as long as nothing shifts, the chance that it is ever given is at most .05.
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
    before = kept.add(batch)
    kept.write(history)
    written = {"history": str(history)}
    if report is not None:
        page = render_months(kept, model.name, today(), context.find_root().obj)
        written["report"] = write_page(report, page)
    voice.note(*found.remarks, *rows.remarks)
    if before is not None:
        voice.note(f"The history had these rows as {before.name}: that line is replaced.")
    said = asdict(batch) | {"evidence": kept.evidence[-1], "alarm": kept.alarm, "files": written}
    voice.result(said, *_lines(batch, kept), *(f"{what}: {path}" for what, path in written.items()))
    if alarm and kept.alarm:
        raise typer.Exit(SHIFTED)
    if alarm and batch.code == "cannot_tell":
        raise typer.Exit(CANNOT_TELL)


def _lines(batch: MonitoredBatch, kept: History) -> list[Line]:
    """The batch in few lines, and what all batches say."""
    evidence = kept.evidence[-1]
    lines: list[Line] = [((batch.decision, "bold"), f": {batch.name}, {batch.rows} rows"), batch.reason]
    if batch.estimated is not None:
        lines.append(f"estimated {METRIC_NAMES[batch.metric]} of the answer: {_estimate(batch)}")
    else:
        lines.append("how good the answer is cannot be estimated without labels here")
    if batch.inputs:
        far = max(batch.inputs, key=lambda one: abs(batch.inputs[one]))
        away = batch.inputs[far]
        if abs(away) >= _SMALL:
            lines.append(f"the mean that moved most: {far}, by {away:+.1f} standard deviations of training")
    batches = "this batch" if len(kept.batches) == 1 else f"all {len(kept.batches)} batches"
    told = f"evidence of a shift over {batches}: {evidence:.2g} (alarm at {1 / LEVEL:.0f})"
    lines.append(((f"ALARM: {told}", "bold red"),) if kept.alarm else told)
    return lines


def _estimate(of: MonitoredBatch | Scored) -> str:
    """An estimate with its interval."""
    assert of.estimated is not None
    value, low, high = of.estimated
    ends = f"{shown(of.metric, low, '', 0)} to {shown(of.metric, high, '', 0)}"
    return f"{shown(of.metric, value, digits=0)} ({ends})"


def _tell_scores(voice: Voice, scored: Scored) -> None:
    every = ", ".join(f"{name} {shown(scored.metric, value)}" for name, value in scored.scores.items())
    lines: list[Line] = [f"{scored.name}, {scored.rows} labels: {METRIC_NAMES[scored.metric]} {every}"]
    if scored.estimated is not None:
        _, low, high = scored.estimated
        inside = low <= scored.scores["answer"] <= high
        lines.append(
            f"estimated without labels: {_estimate(scored)}; the true one is "
            f"{'inside' if inside else 'outside'} the interval"
        )
    lines.append(
        f"unstable features learned from these labels (ORACLE): Brier score lower by "
        f"{scored.gain_of_labels:.3f} ± {scored.error:.3f}"
    )
    lines.append(
        "retrain: add these rows to the source domains and fit again"
        if scored.retrain
        else "no need to retrain: these labels would not clearly have helped"
    )
    voice.result(asdict(scored) | {"retrain": scored.retrain}, *lines)
