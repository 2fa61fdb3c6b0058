"""Drawings as SVG inside the page; colours are classes of the style sheet, for light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from sfboost.report.slopes import FeatureStory
from sfboost.tables.foreign_text import plain

# Narrow, so that words stay readable on a phone; a screen shows it larger.
WIDTH, _SCALE = 420.0, 1.35
_CHARACTER = 6.8
# Shapes, and colours, of the marks of training domains.
_SHAPES = 6
#: So many training domains can be told apart by their marks; of more each is a stroke.
MOST_MARKS = _SHAPES**2
_STROKE = -1


class Canvas:
    """Collects elements; every text is escaped.

    Examples
    --------
    >>> canvas = Canvas(10, 10, "A dot")
    >>> canvas.text(0, 5, "a < b")
    >>> "a &lt; b" in canvas.markup()
    True
    """

    def __init__(self, width: float, height: float, title: str) -> None:
        self._parts = [
            f'<svg viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:{_SCALE * width:.0f}px" '
            f'role="img" aria-label="{_shown(title)}"><title>{_shown(title)}</title>'
        ]

    def text(self, x: float, y: float, words: str, cls: str = "", anchor: str = "start") -> None:
        """Words at a point."""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{cls}" text-anchor="{anchor}">{_shown(words)}</text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, cls: str = "axis") -> None:
        """A straight line."""
        self._parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{cls}"/>')

    def bar(self, x: float, y: float, width: float, height: float, cls: str, title: str = "") -> None:
        """A filled rectangle, with words that show when pointed at."""
        place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.0):.1f}" height="{height:.1f}"'
        self._parts.append(f'<rect {place} class="{cls}"><title>{_shown(title)}</title></rect>')

    def dot(self, x: float, y: float, radius: float, cls: str, title: str = "") -> None:
        """A disc."""
        place = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"'
        self._parts.append(f'<circle {place} class="{cls}"><title>{_shown(title)}</title></circle>')

    def path(self, points: Sequence[tuple[float, float]], cls: str) -> None:
        """A line through points."""
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{joined}" class="{cls}"/>')

    def mark(self, x: float, y: float, domain: int, of: int, title: str) -> None:
        """The mark of one training domain `of` so many."""
        self._parts.append(_mark(x, y, domain if of <= MOST_MARKS else _STROKE, title))

    def markup(self) -> Markup:
        """The finished drawing."""
        return Markup("".join([*self._parts, "</svg>"]))


def _mark(x: float, y: float, domain: int, title: str) -> str:
    """A shape in a colour: up to the 36th every domain has its own, and each six change their filling."""
    if domain == _STROKE:
        ends = f'x1="{x:.1f}" y1="{y - 6.0:.1f}" x2="{x:.1f}" y2="{y + 6.0:.1f}"'
        return f'<line {ends} class="stroke"><title>{_shown(title)}</title></line>'
    r, shape, again = 5.0, domain % _SHAPES, domain // _SHAPES
    outlines = {
        1: [(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)],
        2: [(x, y - r - 1), (x + r + 1, y + r - 1), (x - r - 1, y + r - 1)],
        3: [(x, y - r - 1), (x + r + 1, y), (x, y + r + 1), (x - r - 1, y)],
        4: [(x - r - 1, y - r + 1), (x + r + 1, y - r + 1), (x, y + r + 1)],
        5: [(x - r, y - 2), (x + r, y - 2), (x + r, y + 2), (x - r, y + 2)],
    }
    cls = f"domain d{(domain + again) % _SHAPES}" + " filled" * (again % 2)
    told = f"<title>{_shown(title)}</title>"
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" class="{cls}">{told}</circle>'
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in outlines[shape])
    return f'<polygon points="{points}" class="{cls}">{told}</polygon>'


def key_mark(domain: int = _STROKE) -> Markup:
    """The mark of a training domain, or that of many, for a key beside its name."""
    return Markup(
        f'<svg viewBox="-8 -8 16 16" class="mini" aria-hidden="true">{_mark(0, 0, domain, "")}</svg>'
    )


def draw_slopes(features: Sequence[FeatureStory], domains: Sequence[str], label: str) -> Markup:
    """One line per feature: the slopes of the training domains and the one here, around zero."""
    left, row, top = margin([story.name for story in features], 150.0), 30.0, 26.0
    width = WIDTH
    height = top + row * len(features) + 34.0
    canvas = Canvas(width, height, f"Slopes of the unstable features for {label}, training domains and here")
    reach = 1.05 * max((story.reach for story in features), default=1.0) or 1.0
    middle, half = (left + width - 12.0) / 2.0, (width - 12.0 - left) / 2.0

    def x(value: float) -> float:
        return middle + half * max(-1.0, min(1.0, value / reach))

    canvas.text(x(-reach), top - 12.0, f"← against{_short(label)}", "small")
    canvas.text(x(reach), top - 12.0, f"for{_short(label)} →", "small", "end")
    for k, story in enumerate(features):
        y = top + row * (k + 0.5)
        canvas.line(left, y, width - 12.0, y, "grid")
        canvas.text(left - 10.0, y + 4.0, cut(story.name, left), "strong" if story.reversed else "", "end")
        for d, value in enumerate(story.training):
            if value is not None:
                canvas.mark(x(value), y, d, len(domains), f"{domains[d]}: {value:+.2f}")
        if story.here is not None:
            if story.error is not None:
                canvas.line(
                    x(story.here - 1.96 * story.error), y, x(story.here + 1.96 * story.error), y, "reach"
                )
            canvas.dot(x(story.here), y, 7.0, "here", f"here: {story.here:+.2f}")
    bottom = top + row * len(features)
    canvas.line(middle, top - 6.0, middle, bottom, "axis")
    for value in (-reach, 0.0, reach):
        anchor = {-reach: "start", 0.0: "middle", reach: "end"}[value]
        canvas.text(x(value), bottom + 18.0, f"{value:+.1f}" if value else "0", "small", anchor)
    return canvas.markup()


def draw_shares(rows: Sequence[tuple[str, Sequence[float], bool]], classes: Sequence[str]) -> Markup:
    """One stacked bar of class shares per row (name, shares, whether it is the new domain)."""
    left, row, width = margin([name for name, _, _ in rows], 140.0), 28.0, WIDTH
    canvas = Canvas(width, row * len(rows) + 4.0, "Class shares of the training domains and of the new one")
    for k, (name, shares, new) in enumerate(rows):
        y, start = row * k + 4.0, left
        canvas.text(left - 10.0, y + 15.0, cut(name, left), "strong" if new else "", "end")
        for c, share in enumerate(shares):
            size = share * (width - left)
            canvas.bar(
                start, y, size - 1.0, 22.0, f"class c{c % _SHAPES}", f"{classes[c]}: {100 * share:.1f} %"
            )
            if size > 42.0:
                canvas.text(
                    start + size / 2.0, y + 15.5, f"{100 * share:.0f} %", f"on on{c % _SHAPES}", "middle"
                )
            start += size
    return canvas.markup()


def draw_reliability(before: Mapping[str, list[float]], after: Mapping[str, list[float]]) -> Markup:
    """How often a confidence was right, before and after calibration; the diagonal is as it should be."""
    size, left = 260.0, 40.0
    lowest = min([*before["confidence"], *after["confidence"], *before["accuracy"], *after["accuracy"], 0.5])
    low = max(0.0, int(lowest * 5) / 5)
    canvas = Canvas(
        size + left + 14.0, size + 52.0, "Reliability of the stable predictor before and after calibration"
    )

    def at(confidence: float, accuracy: float) -> tuple[float, float]:
        span = 1.0 - low
        return left + size * (confidence - low) / span, 10.0 + size * (1.0 - (accuracy - low) / span)

    step = 0.2 if low < 0.5 else 0.1
    for k in range(round((1.0 - low) / step) + 1):
        value = low + k * step
        canvas.line(*at(low, value), *at(1.0, value), "grid")
        canvas.text(left - 8.0, at(low, value)[1] + 4.0, f"{100 * value:.0f}", "small", "end")
        canvas.text(at(value, low)[0], size + 28.0, f"{100 * value:.0f}", "small", "middle")
    canvas.line(*at(low, low), *at(1.0, 1.0), "axis")
    canvas.text(left + size / 2, size + 46.0, "confidence of the predicted class, %", "small", "middle")
    for curve, cls in ((before, "before"), (after, "after")):
        points = [at(c, a) for c, a in zip(curve["confidence"], curve["accuracy"], strict=True)]
        canvas.path(points, f"curve {cls}")
        for (px, py), weight, a in zip(points, curve["weight"], curve["accuracy"], strict=True):
            title = f"{cls} calibration: right in {100 * a:.0f} %, {100 * weight:.0f} % of the rows"
            canvas.dot(px, py, 2.5 + 7.0 * weight**0.5, f"point {cls}", title)
    return canvas.markup()


def draw_leak(leak: float, break_even: float) -> Markup:
    """The leak that was allowed for, and the one at which adapting stops paying, on one line."""
    width, left, right = WIDTH, 10.0, WIDTH - 10.0
    end = min(1.0, 1.6 * max(leak, break_even if break_even < 1.0 else 0.0, 0.02))
    canvas = Canvas(width, 74.0, "The leak allowed for and the break-even leak")

    def x(value: float) -> float:
        return left + (right - left) * min(value / end, 1.0)

    canvas.bar(left, 32.0, x(min(break_even, end)) - left, 10.0, "good", "adapting pays")
    canvas.bar(
        x(min(break_even, end)), 32.0, right - x(min(break_even, end)), 10.0, "bad", "adapting does not pay"
    )
    allowed = f"allowed for: {leak:.3f}"
    limit = f"break-even: {break_even:.3f}" if break_even < 1.0 else "no leak below 1 undoes the gain"
    _label(canvas, x(leak), 20.0, allowed, width)
    canvas.dot(x(leak), 37.0, 7.0, "here", allowed)
    if break_even < 1.0:
        canvas.line(x(break_even), 26.0, x(break_even), 48.0, "axis")
    _label(canvas, x(break_even) if break_even < 1.0 else right, 64.0, limit, width)
    return canvas.markup()


def draw_drifts(drifts: Sequence[Mapping[str, Any]], domains: Sequence[str], tolerance: float) -> Markup:
    """One line per column: how far each domain drifts from the others; bold is what was chosen."""
    left, row, top, width = margin([c["name"] for c in drifts], 150.0), 26.0, 8.0, WIDTH
    canvas = Canvas(width, top + row * len(drifts) + 34.0, "Drift of each column, by training domain")
    end = max([tolerance, *(c["drift"] or 0.0 for c in drifts)]) * 1.08
    bottom = top + row * len(drifts)

    def x(value: float) -> float:
        return left + (width - 12.0 - left) * value / end

    for k, column in enumerate(drifts):
        y = top + row * (k + 0.5)
        canvas.line(left, y, width - 12.0, y, "grid")
        canvas.text(left - 10.0, y + 4.0, cut(column["name"], left), "strong" * column["selected"], "end")
        for d, value in enumerate(column["by_domain"]):
            # Of two domains one number says it all.
            name = domains[d] if len(column["by_domain"]) == len(domains) else " and ".join(domains)
            canvas.mark(x(value or 0.0), y, d, len(domains), f"{name}: {value or 0.0:.3f}")
    canvas.line(x(tolerance), top - 4.0, x(tolerance), bottom, "axis")
    canvas.text(x(0.0), bottom + 18.0, "0", "small", "middle")
    _label(canvas, x(tolerance), bottom + 18.0, f"{tolerance:g} is tolerated", width)
    return canvas.markup()


def _shown(words: str) -> Markup:
    return escape(plain(words))


def _label(canvas: Canvas, x: float, y: float, words: str, width: float) -> None:
    """Words above or below a point, kept inside the drawing."""
    half = _CHARACTER * len(words) / 2.0
    canvas.text(min(max(x, half + 2.0), width - half - 2.0), y, words, "small", "middle")


def margin(names: Sequence[str], most: float) -> float:
    """Room for names at the left of a drawing."""
    return min(most, 22.0 + _CHARACTER * max((len(name) for name in names), default=4))


def _short(label: str) -> str:
    """A label where there is room for it; a long one stands above the drawing."""
    return f" {label}" if len(label) <= 10 else ""


def cut(name: str, room: float) -> str:
    """A name that fits the room."""
    most = int((room - 14.0) / _CHARACTER)
    return name if len(name) <= most else name[: most - 1] + "…"
