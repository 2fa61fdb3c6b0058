"""The facts as one HTML page that loads nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from sfboost.adaptation.scores import LOSSES, METRIC_NAMES, POINTS, percent, shown
from sfboost.boosting.metrics import is_skewed, mean_shares
from sfboost.boosting.scored_domains import SKIPPED, why_skipped
from sfboost.diagnostics import CHECKS
from sfboost.diagnostics.result import p_in_cells
from sfboost.foreign_text import plain
from sfboost.report.facts import MOST_SHOWN, ReportFacts, Scores
from sfboost.report.pictures import MOST_MARKS, draw_drifts, draw_features, key_mark
from sfboost.report.training import TrainingFacts, mean_of
from sfboost.report.words import SYMBOLS, in_words

# More columns than this are in the table alone.
_MOST_COLUMNS = 30
_SIGNED = re.compile(r" ([=<±→]) (?=[\d.])")
_UNIT = re.compile(r"(?<=\d) %")
# What is shown of the answer beside that by which answers are compared; AUROC where classes are skewed.
_BESIDE = ("accuracy", "balanced_accuracy", "log_loss", "auroc")
# What is estimated without labels.
_ESTIMATED = ("accuracy", "balanced_accuracy", "auroc", "log_loss", "cost")


def render(facts: ReportFacts, made: str = "", command: str = "") -> str:
    """The page. Everything that came from a table is escaped.

    `made` is the date to show, and `command` what was typed to make it, if any.
    """
    training = facts.training
    names = [domain.name for domain in training.domains]
    many = len(names) > MOST_MARKS
    shares = [(domain.name, domain.shares) for domain in training.domains]
    if many:
        shares = [("source domains, mean", mean_shares([domain.shares for domain in training.domains]))]
    here = [("here (estimated)", facts.prior)]
    if facts.shares is not None:
        here.append(("here, as the answer takes them", facts.shares))
    features, proposal = facts.features[:MOST_SHOWN], training.proposal[:_MOST_COLUMNS]
    return fill(
        "page.html.j2",
        source_values(training),
        facts=facts,
        title=facts.title,
        remarks=facts.remarks,
        estimated_metrics=[m for m in _ESTIMATED if facts.estimated and m in facts.estimated.value],
        questions={check.name.removesuffix(", new domain"): check.question for check in CHECKS},
        best_scores=_best_scores(facts.scores),
        symbols=SYMBOLS,
        made=made,
        command=command,
        drawing=draw_features(features, names) if features else None,
        n_unshown=len(facts.features) - len(features),
        many=many,
        shares=[*shares, *here],
        costed=any(column["cost"] is not None for column in training.proposal),
        drift_drawing=draw_drifts(proposal, names, 0.1) if proposal else None,
    )


def fill(template: str, *groups: Mapping[str, Any], **values: Any) -> str:
    """A template of this room, filled; text is escaped, and what is not known raises."""
    room = files("sfboost.report")
    environment = Environment(
        autoescape=True,
        finalize=unbroken,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: room.joinpath(name).read_text(encoding="utf-8")),
    )
    environment.filters |= {
        "percent": percent,
        "share": lambda value: "< 1 %" if 0.0 < value < 0.005 else percent(value, 0),
        "number": _number,
        "p": p_in_cells,
        "words": in_words,
        "score": lambda value, metric: shown(metric, value),
    }
    environment.globals |= {
        "key_mark": key_mark,
        "metric_names": METRIC_NAMES,
        "losses": LOSSES,
        "points": POINTS,
        "versions": library_versions(),
        "style": room.joinpath("page.css").read_text(encoding="utf-8"),
    }
    return environment.get_template(template).render(*groups, **values)


def source_values(training: TrainingFacts) -> dict[str, Any]:
    """What the part about source domains, which every page has, is filled with."""
    every = training.evaluation
    left_out = [one for one in every if one["decision"] != SKIPPED]
    skewed = is_skewed([domain.shares for domain in training.domains])
    return {
        "best_of": _best_of,
        "nothing_stable": training.nothing_stable,
        "short_names": {"boosted": "SFB"},
        "left_out": left_out,
        "left_out_mean": mean_of(left_out) if left_out else None,
        "folded": len(left_out) > MOST_MARKS,
        "tested": any(one["p_value"] is not None for one in left_out),
        "more_metrics": [
            m for m in _BESIDE if left_out and m != left_out[0]["metric"] and (skewed or m != "auroc")
        ],
        "skipped": why_skipped(
            {one["domain"]: in_words(one["reason"]) for one in every if one["decision"] == SKIPPED}
        ),
    }


def _best_of(domain: Mapping[str, Any]) -> float | None:
    """The best score that a method without labels has in a domain."""
    metric, methods = domain["metric"], ("answer", "stable", "pooled")
    known = [domain["scores"][method][metric] for method in methods]
    return (min if metric in LOSSES else max)((one for one in known if one is not None), default=None)


def library_versions() -> str:
    """The libraries that figures depend on."""
    return ", ".join(f"{name} {version(name)}" for name in ("scikit-learn", "numpy"))


def _best_scores(scores: Scores | None) -> dict[str, float]:
    if scores is None:
        return {}
    by_method = scores.by_method.values()
    return {
        metric: (min if metric in LOSSES else max)(said[metric] for said in by_method)
        for metric in scores.metrics
    }


def unbroken(value: Any) -> Any:
    """Text as a page shows it: plain, and no number torn from its sign or unit where a line breaks."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _UNIT.sub("\u00a0%", _SIGNED.sub("\u00a0\\1\u00a0", plain(value)))


def _number(value: float | None, digits: int = 3) -> str:
    if value is None or value != value:
        return "–"
    return f"{round(value, digits) + 0.0:.{digits}f}"  # no minus before a zero
