"""The page of all batches that were monitored: a trend with its intervals, and the features that shifted."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

from sfboost.adaptation.scores import METRIC_NAMES, shown
from sfboost.boosting.monitoring import LEVEL, History, MonitoredBatch
from sfboost.report.page import fill
from sfboost.report.pictures import Picture, as_svg, colour_of

# More batches than this are drawn as the last ones.
_MOST = 60
_SHIFTED = 0.05


def render_months(history: History, source: str = "", made: str = "", command: str = "") -> str:
    """The page. Everything that came from a table is escaped."""
    batches, evidence = history.batches[-_MOST:], history.evidence[-_MOST:]
    least: dict[str, float] = {}
    for batch in batches:
        for name, p_value in batch.features.items():
            least[name] = min(p_value, least.get(name, 1.0))
    count = len(history.batches)
    features = sorted(least, key=lambda name: least[name])[:20]
    return fill(
        "months.html.j2",
        title=f"{count} batch{'es' * (count > 1)}",
        source=source,
        made=made,
        command=command,
        rows=list(zip(batches, evidence, strict=True))[::-1],
        alarm=history.alarm,
        over="this batch" if count == 1 else f"all {count} batches",
        evidence=max(history.evidence),
        threshold=1.0 / LEVEL,
        level=LEVEL,
        n_unshown=count - len(batches),
        metric_name=METRIC_NAMES[batches[-1].metric],
        trend=draw_trend(batches),
        dots=draw_dots(batches, features) if features else None,
    )


@as_svg
def draw_trend(batches: Sequence[MonitoredBatch]) -> Picture:
    """What is estimated of each batch, with its interval; a filled dot is a batch that shifted."""
    picture = Picture(f"Estimated {METRIC_NAMES[batches[-1].metric]} of each batch, with its interval", 190.0)
    axes = picture.axes
    for k, batch in enumerate(batches):
        if batch.estimated is None:
            continue
        value, low, high = (100 * part for part in batch.estimated)
        axes.plot([k, k], [low, high], color=colour_of("line"), linewidth=3.0)
        words = [shown(batch.metric, one) for one in batch.estimated]
        told = f"{batch.name}: {words[0]} ({words[1]} to {words[2]})"
        colour = colour_of("here" if batch.p_value < _SHIFTED else "good")
        picture.dot(k, value, told, marker="o", s=60, color=colour)
    axes.set(xlim=(-0.5, max(len(batches) - 0.5, 0.5)), ylim=(0, 104), yticks=[0, 50, 100])
    axes.set_yticklabels(["0 %", "50 %", "100 %"])
    _name_batches(picture, batches)
    axes.grid(axis="y")
    return picture


@as_svg
def draw_dots(batches: Sequence[MonitoredBatch], features: Sequence[str]) -> Picture:
    """A dot for each feature and batch, the larger the smaller its p-value."""
    picture = Picture("How unlike its source domains each feature is, by batch", 60.0 + 24.0 * len(features))
    axes = picture.axes
    for row, name in enumerate(features):
        for k, batch in enumerate(batches):
            p_value = batch.features.get(name)
            if p_value is None:
                continue
            # Each feature's p-value is by itself: it stands out where it would among all of them, too.
            loud = p_value * len(features) < _SHIFTED
            size = 12.0 + 22.0 * min(max(-_log10(p_value), 0.0), 6.0)
            colour = colour_of("here" if loud else "line")
            picture.dot(k, row, f"{name}, {batch.name}: p = {p_value:.2g}", marker="o", s=size, color=colour)
    short = [name if len(name) <= 18 else f"{name[:17]}…" for name in features]
    axes.set_yticks(range(len(features)), [picture.word(name) for name in short])
    axes.set(xlim=(-0.5, max(len(batches) - 0.5, 0.5)), ylim=(len(features) - 0.5, -0.5))
    _name_batches(picture, batches)
    return picture


def _name_batches(picture: Picture, batches: Sequence[MonitoredBatch]) -> None:
    """The first and the last batch by name; those between are told when they are pointed at."""
    ends = sorted({0, len(batches) - 1})
    names = [batches[k].name if len(batches[k].name) <= 18 else f"{batches[k].name[:17]}…" for k in ends]
    picture.axes.set_xticks(ends, [picture.word(name) for name in names])


def _log10(p_value: float) -> float:
    return log10(max(p_value, 1e-15))
