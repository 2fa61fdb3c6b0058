"""What `adapt` and `run` say of one target domain, or of each of several: words, JSON, the report."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import typer

from sfboost.adaptation.scores import METRIC_NAMES, shown
from sfboost.boosting.evaluation import metric_of
from sfboost.boosting.metrics import is_skewed
from sfboost.cli.console import NOT_ADAPTED, Line, Voice
from sfboost.cli.inputs import NewSource
from sfboost.cli.options import AdaptOptions
from sfboost.cli.predictions import Predicting, write_predictions
from sfboost.cli.project import Project, stand_in_remarks
from sfboost.cli.proposal import proposal_lines
from sfboost.frames.reading import Kind
from sfboost.frames.writing import whole_output
from sfboost.notices import first_names
from sfboost.report import ReportFacts, make_facts, render
from sfboost.report.domains import DomainFact, domain_facts, render_domains
from sfboost.report.words import NO_ANSWER

_COLOURS = {"pooled": "green", "adapted": "green", "kept stable": "cyan"}
_COLOURS |= {"cannot tell": "cyan", NO_ANSWER: "red"}


def answer_one(
    project: Project, found: NewSource, asked: AdaptOptions, source: str, remarks: tuple[str, ...] = ()
) -> tuple[Project, ReportFacts]:
    """Adapt to one target domain; `source` names what the model was fitted to, `remarks` are on that."""
    rows = found.prepare(project, asked.labels)
    project = project.adapt(rows, asked.answer)
    return project, make_facts(
        project.require_adapted(),
        project.training,
        rows.X,
        title=f"{found.name} as the target domain",
        source=source,
        y=rows.y,
        cells=project.cells(rows) if asked.rows else None,
        missing=project.encoder.missing_shares(rows.table),
        remarks=(
            *remarks,
            *stand_in_remarks(project.roles, project.training.proposal),
            *found.remarks,
            *rows.remarks,
        ),
    )


def finish(
    voice: Voice,
    project: Project,
    facts: ReportFacts,
    written: dict[str, str],
    asked: AdaptOptions,
    n_rows: int,
    command: str,
) -> None:
    """Write the pages and say what came out; `n_rows` counts all rows, where the facts are of some.

    With code 3 if the stable features alone answer, and must not.
    """
    if asked.report is not None:
        written["report"] = write_page(asked.report, render(facts, today(), command))
    voice.note(*facts.remarks)
    lines = [*_words(facts, metric_of(project.model)), *(f"{what}: {path}" for what, path in written.items())]
    voice.result(facts.to_dict() | {"rows": n_rows, "files": written}, *lines)
    if asked.require_adapted and facts.decision == "kept stable":
        raise typer.Exit(NOT_ADAPTED)


def write_page(path: Path, text: str) -> str:
    """Write a page, and return its name."""
    with whole_output(path) as part:
        part.write_text(text, encoding="utf-8")
    return str(path)


def today() -> str:
    """Return the date, as pages show it."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def _words(facts: ReportFacts, metric: str) -> list[Line]:
    """The decision, why, the scores, and which assumptions are in doubt."""
    first = facts.headline
    colour = _COLOURS[first.tone or facts.decision]
    lines: list[Line] = [
        ((facts.decision, f"bold {colour}"), f": {first.sentence} {first.count}"),
        first.because,
        *([first.advice] if first.tone == NO_ANSWER else []),
        *proposal_lines(facts.training.proposal),
    ]
    usual = ["accuracy", "balanced_accuracy", "auroc"][: 3 if is_skewed([facts.prior]) else 1]
    for one in dict.fromkeys([metric, *usual]):
        if facts.scores is not None and one in facts.scores.metrics:
            scores = ", ".join(f"{name} {shown(one, of[one])}" for name, of in facts.scores.by_method.items())
            lines.append(f"{METRIC_NAMES[one]} on the {facts.scores.n_rows} labels that were given: {scores}")
        if facts.estimated is not None:
            value, *ends = (getattr(facts.estimated, part)[one] for part in ("value", "lower", "upper"))
            within = " to ".join(shown(one, end, "", 0) for end in ends)
            lines.append(
                f"estimated {METRIC_NAMES[one]} of the answer: {shown(one, value, digits=0)} ({within})"
            )
    doubtful = [one for one in facts.checks if one.bears and one.verdict in ("violated", "doubtful")]
    if doubtful:
        names = ", ".join(f"{one.name} ({one.where}): {one.verdict}" for one in doubtful)
        lines.append(f"assumptions in doubt: {names}")
    return lines


def answer_each(
    voice: Voice,
    project: Project,
    found: NewSource,
    domain: npt.NDArray[np.object_],
    source: str,
    remarks: tuple[str, ...],
    asked: AdaptOptions,
    written: dict[str, str],
    kind: Kind,
    command: str,
) -> None:
    """Adapt to each of several target domains, write predictions and page, and say what came out.

    `source` names the training table, `remarks` are on it. Code 3 if adapting was required and was nowhere.
    """
    with voice.waiting("Adapting"):
        rows = found.prepare(project, each=True)
        many = project.adapt_each(rows, domain, asked.answer)
        facts = domain_facts(many, rows.X, domain, rows.y)
    write_predictions(Predicting(project, many=many), found.source, written["predictions"], kind)
    remarks = (*remarks, *stand_in_remarks(project.roles, project.training.proposal), *rows.remarks)
    if asked.report is not None:
        title = f"The domains of {found.name}"
        page = render_domains(facts, project.training, title, source, today(), command, remarks)
        written["report"] = write_page(asked.report, page)
    voice.note(*remarks)
    values = {"rows": len(domain), "domains": [asdict(fact) for fact in facts], "remarks": remarks}
    lines = [*_words_of_many(facts), *(f"{what}: {path}" for what, path in written.items())]
    voice.result(values | {"files": written}, *lines)
    if asked.require_adapted and {fact.decision for fact in facts} == {"kept stable"}:
        raise typer.Exit(NOT_ADAPTED)


def _words_of_many(facts: list[DomainFact]) -> list[Line]:
    counts = Counter(fact.decision for fact in facts).most_common()
    lines: list[Line] = [
        f"{len(facts)} domains: {', '.join(f'{count} {decision}' for decision, count in counts)}"
    ]
    changed = [fact.name for fact in facts if fact.verdict == "changed"]
    if changed:
        lines.append(f"features shifted in {len(changed)}: {first_names(changed)}")
    scored = [fact for fact in facts if fact.answer is not None]
    if scored:
        n_rows = [fact.n_rows for fact in scored]
        stable, answer = (
            100 * np.average([getattr(fact, kind) for fact in scored], weights=n_rows)
            for kind in ("stable", "answer")
        )
        lines.append(f"accuracy on the labels that were given: stable {stable:.1f} %, answer {answer:.1f} %")
    return lines
