"""The picture of what each unstable feature means in every own domain, and here."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sfboost.change.by_feature import FeatureMeaning
from sfboost.report.svg import WIDTH, Canvas, cut, margin

#: What the picture says of a feature, beside its marks.
_TOLD = {"changed": "✗", "unchanged": "✓", "cannot tell": "?"}


def draw_meanings(meanings: Sequence[FeatureMeaning], domains: Sequence[str]) -> Markup:
    """One line per feature: what it means in each own domain and here, and how much of that is left."""
    left, right, row, top = margin([m.name for m in meanings], 130.0), 108.0, 32.0, 24.0
    width, bottom = WIDTH, top + row * len(meanings)
    canvas = Canvas(width, bottom + 24.0, "Meaning of each unstable feature in every own domain and here")
    low, high = _limits(meanings)
    start, end = left + 8.0, width - right - 8.0

    def x(value: float) -> float:
        return start + (end - start) * (min(max(value, low), high) - low) / (high - low)

    if x(0.0) - left > 60.0:
        canvas.text(x(0.0) - 5.0, top - 10.0, "← opposite", "small", "end")
    canvas.text(x(0.0) + 5.0, top - 10.0, "as in training →", "small")
    for k, meaning in enumerate(meanings):
        y = top + row * (k + 0.5)
        changed = meaning.verdict == "changed"
        canvas.line(left, y, width - right, y, "grid")
        canvas.text(left - 8.0, y + 4.0, cut(meaning.name, left), "strong" if changed else "", "end")
        for name, value in meaning.own.items():
            beyond = (value > high) - (value < low)
            if beyond:
                canvas.text(x(value) + 8.0 * beyond, y + 4.0, "‹ ›"[beyond + 1], "small", "middle")
            canvas.mark(x(value), y, domains.index(name), len(domains), f"{name}: {value:+.2f}")
        if meaning.here == meaning.here:  # else it has one value here
            reach = 1.96 * meaning.error
            canvas.line(x(meaning.here - reach), y, x(meaning.here + reach), y, "reach")
            canvas.dot(x(meaning.here), y, 7.0, "here", f"here: {meaning.here:+.2f} ± {meaning.error:.2f}")
        told = f"{_TOLD[meaning.verdict]} {left_in_words(meaning)}"
        canvas.text(width - right + 8.0, y + 4.0, told, f"told {meaning.verdict.replace(' ', '-')}")
    canvas.line(x(0.0), top - 6.0, x(0.0), bottom, "axis")
    canvas.text(x(0.0), bottom + 16.0, "0: says nothing", "small", "middle")
    return canvas.markup()


def _limits(meanings: Sequence[FeatureMeaning]) -> tuple[float, float]:
    """From least to most, but no farther than thrice what features usually mean.

    Where a feature hardly varies its blind meaning can be anything; what lies outside is drawn at the edge.
    """
    known = [m for m in meanings if m.here == m.here]
    usual = [abs(sorted(m.own.values())[len(m.own) // 2]) for m in meanings]
    reach = 3.0 * max([*usual, *(abs(m.here) / 3.0 for m in known[:3]), 0.1])
    ends = [m.here + side * 1.96 * m.error for m in known for side in (-1.0, 1.0)]
    values = [*ends, *(value for m in meanings for value in m.own.values())]
    high = min(max([*values, 0.1]), reach)
    return max(min([*values, -0.12 * high]), -reach), high


def left_in_words(meaning: FeatureMeaning) -> str:
    """How much of a meaning is left, in few words."""
    if meaning.verdict == "cannot tell":
        return "cannot tell"
    if meaning.left < -0.3:
        return "turned"
    return "as before" if meaning.verdict == "unchanged" else f"{100 * max(meaning.left, 0.0):.0f} % left"
