"""What `adapt` and `run` tell of one new domain, or of each of several: words, JSON, the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import typer

from sfboost.adaptation.scores import METRIC_NAMES, shown
from sfboost.boosting.evaluation import metric_of
from sfboost.boosting.metrics import is_skewed
from sfboost.boosting.scored_domains import ANSWER
from sfboost.cli.console import NOT_ADAPTED, Line, Voice
from sfboost.cli.inputs import NewSource
from sfboost.cli.options import AdaptOptions
from sfboost.cli.predictions import Predicting, write_predictions
from sfboost.cli.project import Project, drift_lines
from sfboost.diagnostics import Performance
from sfboost.frames.reading import Kind
from sfboost.frames.writing import whole_output
from sfboost.notices import first_names
from sfboost.report import ReportFacts, make_facts, model_card, render
from sfboost.report.domains import DomainFact, domain_facts, render_domains
from sfboost.report.words import NO_ANSWER

# Points of accuracy, as a share, that a reader notices.
_NOTICED = 0.01
_COLOURS = {"pooled": "green", "adapted": "green", "kept stable": "cyan"}
_COLOURS |= {"cannot tell": "cyan", NO_ANSWER: "red"}


def answer_one(
    project: Project, found: NewSource, asked: AdaptOptions, source: str, remarks: tuple[str, ...] = ()
) -> tuple[Project, ReportFacts]:
    """Adapt to one new domain; `source` is the name of what taught the model, `remarks` are on it."""
    rows = found.prepare(project, asked.labels)
    project = project.adapt(rows, asked.answer.value)
    cells = project.cells(rows, asked.show_ids) if asked.rows else None
    told = (*remarks, *found.remarks, *rows.remarks)
    return project, make_facts(
        project.require_adapted(),
        project.training,
        rows.X,
        title=f"{found.name} as a new domain",
        source=source,
        y=rows.y,
        cells=cells,
        missing=project.encoder.missing_shares(rows.table),
        remarks=told,
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
    best = adapted.best
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
        "stable_p_value": None if best is None or best.stable_change is None else best.stable_change.p_value,
        "features": [vars(meaning) for meaning in facts.meanings],
        "stable_features": [vars(meaning) for meaning in facts.stable_meanings],
        "shares": None if facts.shares is None else list(facts.shares),
        "reversed": [f.name for story in facts.stories for f in story.features if f.reversed],
        "checks": [vars(check) for check in facts.checks],
        "foretold": None if facts.foretold is None else {k: vars(v) for k, v in facts.foretold.items()},
        "scores": None if facts.scores is None else {k: dict(v) for k, v in facts.scores.by_method.items()},
        "remarks": list(facts.remarks),
    } | ({"drifts": facts.training.drifts} if facts.training.drifts else {})


def refuse_for_many(asked: AdaptOptions) -> None:
    """What is of one new domain cannot be had for several."""
    if asked.labels is not None:
        raise ValueError(
            "--labels are of one new domain, and NEW holds several: give the rows of one at a time."
        )
    if asked.card is not None:
        raise ValueError(
            "A model card is of one new domain, and NEW holds several: leave --card out, or give the rows of "
            "one."
        )


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
    """Adapt to each of several new domains, write predictions and page, and tell.

    `source` is the name of the training table, `remarks` are on it. Code 3 if adapting was required and was
    nowhere.
    """
    with voice.waiting("Adapting"):
        rows = found.prepare(project, each=True)
        many = project.model.adapt(rows.X, sample_domain=domain, answer=asked.answer.value)
        facts = domain_facts(many, rows.X, domain, rows.y)
    write_predictions(Predicting(project, many=many), found.source, written["predictions"], kind)
    remarks = (*remarks, *rows.remarks)
    if asked.report is not None:
        title, today = f"The domains of {found.name}", datetime.now(UTC).strftime("%Y-%m-%d")
        page = render_domains(facts, project.training, title, source, today, command, remarks)
        with whole_output(asked.report) as part:
            part.write_text(page, encoding="utf-8")
        written["report"] = str(asked.report)
    voice.note(*remarks)
    values = {"rows": len(domain), "domains": [asdict(fact) for fact in facts], "remarks": list(remarks)}
    files = [f"{what}: {path}" for what, path in written.items()]
    voice.result(values | {"files": written}, *_words(facts), *files)
    if asked.require_adapted and {fact.decision for fact in facts} == {"kept stable"}:
        raise typer.Exit(NOT_ADAPTED)


def _words(facts: list[DomainFact]) -> list[Line]:
    counts = Counter(fact.decision for fact in facts)
    lines: list[Line] = [
        f"{len(facts)} domains: {', '.join(f'{count} {kind}' for kind, count in counts.most_common())}"
    ]
    changed = [fact.name for fact in facts if fact.verdict == "changed"]
    if changed:
        lines.append(f"a meaning changed in {len(changed)}: {first_names(changed)}")
    scored = [fact for fact in facts if fact.answer is not None]
    if scored:
        n_rows = np.array([fact.n_rows for fact in scored])
        stable, answer = (
            100 * np.average([getattr(fact, kind) for fact in scored], weights=n_rows)
            for kind in ("stable", "answer")
        )
        lines.append(f"accuracy on the labels that were given: stable {stable:.1f} %, answer {answer:.1f} %")
    return lines
