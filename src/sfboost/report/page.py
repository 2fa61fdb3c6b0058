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
from sfboost.boosting.scored_domains import ANSWER, SKIPPED, why_skipped
from sfboost.diagnostics import CHECKS
from sfboost.diagnostics.result import p_in_cells
from sfboost.foreign_text import plain
from sfboost.report.facts import MOST_SHOWN, ReportFacts, Scores
from sfboost.report.pictures import (
    MOST_MARKS,
    draw_drifts,
    draw_meanings,
    draw_reliability,
    draw_slopes,
    key_mark,
)
from sfboost.report.training import TrainingFacts, mean_of, own_domains
from sfboost.report.words import SYMBOLS, in_words

# More columns than this are in the table alone.
_MOST_COLUMNS = 30
_SIGNED = re.compile(r" ([=<±→]) (?=[\d.])")
_UNIT = re.compile(r"(?<=\d) %")
# What is shown of the answer beside that by which answers are compared; AUROC where classes are skewed.
_BESIDE = ("accuracy", "balanced_accuracy", "log_loss", "auroc")
# What is foretold without labels.
_FORETOLD = ("accuracy", "balanced_accuracy", "auroc", "log_loss", "cost")


def render(facts: ReportFacts, made: str = "", command: str = "") -> str:
    """The page. Everything that came from a table is escaped.

    `made` is the date to show, and `command` what was typed to make it, if any.
    """
    training = facts.training
    names = [domain.name for domain in training.domains]
    many = len(names) > MOST_MARKS
    shares = [(domain.name, domain.shares) for domain in training.domains]
    if many:
        shares = [("own domains, mean", mean_shares([domain.shares for domain in training.domains]))]
    here = [("here (estimated)", facts.prior)]
    if facts.shares is not None:
        here.append(("here, as the answer takes them", facts.shares))
    curves = training.before is not None and training.after is not None
    meanings = facts.meanings[:MOST_SHOWN]
    guarded = facts.leak is not None and facts.break_even is not None and facts.break_even == facts.break_even
    return fill(
        "page.html.j2",
        own_values(training),
        facts=facts,
        title=facts.title,
        remarks=facts.remarks,
        foretold_metrics=[m for m in _FORETOLD if facts.foretold and m in facts.foretold[ANSWER].value],
        questions={check.name.removesuffix(", new domain"): check.question for check in CHECKS},
        best_scores=_best(facts.scores),
        symbols=SYMBOLS,
        made=made,
        command=command,
        meanings_drawing=draw_meanings(meanings, names) if meanings else None,
        n_unshown=len(facts.meanings) - len(meanings),
        many=many,
        shares=[*shares, *here],
        drift_drawing=draw_drifts(training.drifts[:_MOST_COLUMNS], names, 0.1) if training.drifts else None,
        slope_drawings=[draw_slopes(story.features, names, story.label) for story in facts.stories],
        reliability_drawing=draw_reliability(training.before, training.after) if curves else None,  # type: ignore[arg-type]
        guarded=guarded,
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


def own_values(training: TrainingFacts) -> dict[str, Any]:
    """What the part about own domains, which every page has, is filled with."""
    every = own_domains(training.evaluation)
    own = [one for one in every if one["decision"] != SKIPPED]
    skewed = is_skewed([domain.shares for domain in training.domains])
    return {
        "own": own,
        "own_mean": mean_of(own) if own else None,
        "own_folded": len(own) > MOST_MARKS,
        "own_tested": any(one["p_value"] is not None for one in own),
        "own_metrics": [m for m in _BESIDE if own and m != own[0]["metric"] and (skewed or m != "auroc")],
        "own_skipped": why_skipped(
            {one["domain"]: in_words(one["reason"]) for one in every if one["decision"] == SKIPPED}
        ),
    }


def library_versions() -> str:
    """The libraries that figures depend on."""
    return ", ".join(f"{name} {version(name)}" for name in ("scikit-learn", "numpy"))


def _best(scores: Scores | None) -> dict[str, float]:
    """The best value of each score."""
    if scores is None:
        return {}
    by_metric = {metric: [said[metric] for said in scores.by_method.values()] for metric in scores.metrics}
    return {metric: (min if metric in LOSSES else max)(values) for metric, values in by_metric.items()}


def unbroken(value: Any) -> Any:
    """Text as a page shows it: plain, and no number torn from its sign or unit where a line breaks."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _UNIT.sub("\u00a0%", _SIGNED.sub("\u00a0\\1\u00a0", plain(value)))


def _number(value: float | None, digits: int = 3) -> str:
    if value is None or value != value:
        return "–"
    return f"{round(value, digits) + 0.0:.{digits}f}"  # no minus before a zero
