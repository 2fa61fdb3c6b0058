"""The facts as a Markdown model card: what it is, what it learned from, how it did, where it ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from sfboost.adaptation.scores import LOSSES, METRIC_NAMES, percent, shown
from sfboost.boosting.scored_domains import COMPARED, SKIPPED, why_skipped
from sfboost.diagnostics import Performance
from sfboost.foreign_text import plain
from sfboost.report.facts import ReportFacts
from sfboost.report.training import TrainingFacts, mean_of, own_domains
from sfboost.report.words import in_words

# What Markdown would read as a sign of its own.
_SIGNS = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def model_card(facts: ReportFacts) -> str:
    """The card. What came from a table is escaped, so that it stays text."""
    parts = [
        f"# Model card: {_text(facts.title)}",
        f"A classifier of {_names(facts.classes)}, made by sfboost {facts.version} (Stable Feature Boosting)"
        ": some features are trusted to mean the same everywhere; of the others the rows of the new domain "
        "were asked whether they still mean there what they meant in training.",
        "## Decision",
        f"**{facts.headline.kind}.** {_text(f'{facts.headline.sentence} {facts.headline.count}'.rstrip())}",
        _text(facts.headline.because),
        _text(facts.headline.advice),
        "## Features",
        f"- Stable: {_names(facts.stable_features)}.\n- Unstable: {_names(facts.unstable_features)}.",
        "## Training data",
        _domains(facts),
        "## How it would have done on its own domains",
        _evaluation(facts.training),
        "## In the new domain",
        _here(facts),
        "## Assumptions",
        _table(
            ("check", "where", "verdict", "number", "what to do"),
            [(c.name, c.where, c.verdict, c.number, in_words(c.remedy) or "–") for c in facts.checks],
        ),
        "## Limits",
        _limits(facts),
    ]
    return "\n\n".join(parts) + "\n"


def _domains(facts: ReportFacts) -> str:
    rows = [
        (domain.name, domain.n_rows, *map(percent, domain.shares), percent(domain.accuracy))
        for domain in facts.training.domains
    ]
    shares = [f"share of {name}" for name in facts.classes]
    return _table(("domain", "rows", *shares, "accuracy of the stable features, held out"), rows)


def _evaluation(training: TrainingFacts) -> str:
    if not training.evaluation:
        return "Not measured."
    every = own_domains(training.evaluation)
    domains = [one for one in every if one["decision"] != SKIPPED]
    left_out = why_skipped({d["domain"]: in_words(d["reason"]) for d in every if d["decision"] == SKIPPED})
    if not domains:
        return " ".join(f"{_text(sentence.rstrip('.'))}." for sentence in left_out)
    metric = domains[0]["metric"]
    told = (
        "Each training domain played the new one, with its labels hidden; then they scored, by "
        f"{METRIC_NAMES[metric]} ({'less' if metric in LOSSES else 'more'} is better):"
    )
    lines = [
        (
            d["domain"],
            *(shown(metric, value) for value in (*map(d["scores"].get, COMPARED), d["regret"])),
            d["decision"],
        )
        for d in (*domains, mean_of(domains))
    ]
    head = ("as the new domain", "stable", "answer", "pooled", "labelled (ORACLE)", "regret", "decision")
    return "\n\n".join(
        (told, _table(head, lines), *(f"{_text(sentence.rstrip('.'))}." for sentence in left_out))
    )


def _here(facts: ReportFacts) -> str:
    changes = facts.changes
    lines = [
        f"{changes.n_rows} rows were adapted to, {facts.n_labelled or 'none'} of them labelled; "
        f"{changes.n_changed} of their predicted classes differ from those of the stable features alone."
    ]
    shares = zip(facts.classes, facts.prior, strict=True)
    lines.append(f"Estimated shares: {', '.join(f'{_text(name)} {percent(p)}' for name, p in shares)}.")
    shifted = [one.name for one in (*facts.meanings, *facts.stable_meanings) if one.verdict == "changed"]
    if shifted:
        lines.append(f"Features that go with the other side otherwise than in training: {_names(shifted)}.")
    if facts.foretold is not None:
        lines.append(
            f"Foretold{'' if facts.n_labelled else ' without labels'}, in brackets as far off as such "
            "figures were on own domains, in nine of ten:"
        )
        rows = [
            (name, *(_within(told, m) for m in ("accuracy", "log_loss")))
            for name, told in facts.foretold.items()
        ]
        lines.append(_table(("method", "accuracy", "log loss"), rows))
    if facts.scores is not None:
        metrics, by_method = facts.scores.metrics, facts.scores.by_method
        rows = [(name, *(shown(m, values[m]) for m in metrics)) for name, values in by_method.items()]
        lines.append(f"Scores on {facts.scores.n_rows} labels, which nothing was fitted to:")
        lines.append(_table(("method", *(METRIC_NAMES[m] for m in metrics)), rows))
    return "\n\n".join(lines)


def _within(told: Performance, metric: str) -> str:
    ends = " to ".join(shown(metric, end[metric], "") for end in (told.lower, told.upper))
    return f"{shown(metric, told.value[metric])} ({ends})"


def _limits(facts: ReportFacts) -> str:
    alarming = [check for check in facts.checks if check.verdict != "holds"]
    lines = [
        "It is for the domain that it was adapted to; another one needs an adaptation of its own.",
        "No test can show, without labels, that stable and unstable features are independent within a class.",
        *(f"{check.name}, {check.where}: {check.verdict}." for check in alarming),
        *facts.remarks,
    ]
    return "\n".join(f"- {_text(line)}" for line in lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [[_text(cell) for cell in row] for row in (head, *rows)]
    lines.insert(1, ["---"] * len(head))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(_text, names)) or "none"


def _text(value: Any) -> str:
    return _SIGNS.sub(r"\\\1", plain(str(value)))
