"""What `adapt` and `run` tell: the decision in words and as JSON, and the report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import typer

from sfboost.adaptation.scores import METRIC_NAMES, shown
from sfboost.boosting.evaluation import metric_of
from sfboost.boosting.metrics import is_skewed
from sfboost.boosting.scored_domains import ANSWER
from sfboost.cli.console import NOT_ADAPTED, Line, Voice
from sfboost.cli.options import AdaptOptions
from sfboost.cli.project import Project, drift_lines
from sfboost.diagnostics import Performance
from sfboost.report import ReportFacts, model_card, render
from sfboost.report.words import NO_ANSWER
from sfboost.tables.writing import whole_output

# Points of accuracy, as a share, that a reader notices.
_NOTICED = 0.01
_COLOURS = {"pooled": "green", "adapted": "green", "blended": "yellow", "kept stable": "cyan"}
_COLOURS |= {"cannot tell": "cyan", NO_ANSWER: "red"}


def finish(
    voice: Voice,
    project: Project,
    facts: ReportFacts,
    written: dict[str, str],
    asked: AdaptOptions,
    n_rows: int,
    command: str,
) -> None:
    """Write the pages, tell the outcome; with code 3 if the stable predictor was kept, and must not be."""
    made = datetime.now(UTC).strftime("%Y-%m-%d")
    for what, path, make in (
        ("report", asked.report, lambda: render(facts, made, command)),
        ("card", asked.card, lambda: model_card(facts)),
    ):
        if path is not None:
            with whole_output(path) as part:
                part.write_text(make(), encoding="utf-8")
            written[what] = str(path)
    tell(voice, project, facts, written, n_rows)
    if asked.require_adapted and project.require_adapted().decision_ == "kept stable":
        raise typer.Exit(NOT_ADAPTED)


def tell(
    voice: Voice, project: Project, facts: ReportFacts, written: dict[str, str], n_rows: int | None = None
) -> None:
    """The decision, why, the scores if labels were given, and the files.

    `n_rows` is the number of all rows, where the facts are of some.
    """
    voice.note(*facts.remarks)
    first = facts.headline
    lines: list[Line] = [
        (
            (first.kind, f"bold {_COLOURS[first.tone or first.kind]}"),
            f": {first.sentence} {first.count}".rstrip(),
        ),
        first.because,
        *([first.advice] if first.tone == NO_ANSWER else []),
    ]
    lines += drift_lines(facts.training)
    usual = ["accuracy", "balanced_accuracy", "auroc"][: 3 if is_skewed([facts.prior]) else 1]
    for metric in dict.fromkeys([metric_of(project.model), *usual]):
        named = METRIC_NAMES[metric]
        if facts.scores is not None and metric in facts.scores.metrics:
            scores = ", ".join(
                f"{method} {shown(metric, values[metric])}"
                for method, values in facts.scores.by_method.items()
            )
            lines.append(f"{named} on the {facts.scores.n_rows} labels that were given: {scores}")
        if facts.foretold is not None:
            told = ", ".join(
                f"{name} {shown(metric, one.value[metric], digits=0)} ("
                + " to ".join(shown(metric, end[metric], "", 0) for end in (one.lower, one.upper))
                + ")"
                for name, one in facts.foretold.items()
            )
            blind = "" if facts.n_labelled else ", without labels"
            lines.append(f"{named} to expect here{blind}: {told}")
    lines += _caution(facts.foretold)
    alarming = [check for check in facts.checks if check.verdict in ("violated", "doubtful")]
    if alarming:
        names = ", ".join(f"{check.name} ({check.where}): {check.verdict}" for check in alarming)
        # Whoever reads of four violations beside "use all features as trained" must know whose they are.
        whose = " of the other answers" if first.kind == "pooled" else ""
        lines.append(f"assumptions{whose} in doubt: {names}")
    lines += [f"{what}: {path}" for what, path in written.items()]
    values = as_values(project, facts) | {"files": written}
    voice.result(values if n_rows is None else values | {"rows": n_rows}, *lines)


def _caution(foretold: Mapping[str, Performance] | None) -> list[Line]:
    """Where the stable features think better of themselves than the answer does: nobody chose by that."""
    if foretold is None:
        return []
    stable, answer = (foretold[name].value["accuracy"] for name in ("stable", ANSWER))
    if stable - answer < _NOTICED:
        return []
    return ["(the stable features are taken at their own word there; which is better, your own domains say)"]


def as_values(project: Project, facts: ReportFacts) -> dict[str, Any]:
    """The outcome as plain values."""
    adapted = project.require_adapted()
    return {
        "decision": adapted.decision_,
        "reason": adapted.reason_,
        "rows": facts.changes.n_rows,
        "changed": facts.changes.n_changed,
        "classes": list(facts.classes),
        "prior": list(facts.prior),
        "confusion": [list(row) for row in facts.confusion],
        "informativeness": facts.informativeness,
        "leak": facts.leak,
        "break_even": facts.break_even,
        "p_value": None if adapted.change_ is None else adapted.change_.p_value,
        "features": [vars(meaning) for meaning in facts.meanings],
        "reversed": [f.name for story in facts.stories for f in story.features if f.reversed],
        "checks": [vars(check) for check in facts.checks],
        "foretold": None if facts.foretold is None else {k: vars(v) for k, v in facts.foretold.items()},
        "scores": None if facts.scores is None else {k: dict(v) for k, v in facts.scores.by_method.items()},
        "remarks": list(facts.remarks),
    } | ({"drifts": facts.training.drifts} if facts.training.drifts else {})
