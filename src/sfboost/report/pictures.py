"""The page's pictures: drawn by matplotlib, in the colours and letters that the page's style sheet has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from io import StringIO
from typing import Any, ParamSpec

from markupsafe import Markup, escape

from sfboost.figures import new_figure
from sfboost.foreign_text import plain
from sfboost.report.words import has_turned
from sfboost.shift.by_feature import FeatureMeaning

# Narrow, so that words stay readable on a phone; a screen shows it larger.
_WIDTH, _SCALE, _ROW = 420.0, 1.35, 30.0
_LONGEST = 18
# Variables of the style sheet, each with a value for light and one for dark; a picture is drawn in stand-ins.
_NAMES = ("black", "ink", "soft", "line", "paper", "here", "good", "d0", "d1", "d2", "d3", "d4", "d5")
_COLOUR = {name: f"#0000{number:02x}" for number, name in enumerate(_NAMES)}  # no #000000: black is left out
# A source domain has a shape, a colour and a filling of its own, as long as there are enough.
_SHAPES = ("o", "s", "^", "D", "v", "P")
MOST_MARKS = len(_SHAPES) ** 2
_ONE_OF_MANY = -1
_STYLE = {
    **{f"axes.spines.{side}": False for side in ("left", "right", "top", "bottom")},
    **{"svg.fonttype": "none", "font.size": 12.0, "text.color": _COLOUR["ink"]},
    **{"axes.labelsize": 11.0, "axes.labelcolor": _COLOUR["soft"], "axes.axisbelow": True},
    **{"xtick.bottom": False, "xtick.labelsize": 11.0, "xtick.labelcolor": _COLOUR["soft"]},
    **{"ytick.left": False, "ytick.labelsize": 12.0, "ytick.labelcolor": _COLOUR["ink"]},
    **{"grid.color": _COLOUR["line"], "grid.linewidth": 1.0},
}
_TOLD = {"changed": ("✗", "here"), "unchanged": ("✓", "good"), "cannot tell": ("?", "soft")}
_Arguments = ParamSpec("_Arguments")


class _Picture:
    """Axes, and the words on them.

    Words are put in when the picture is written: a name may be anybody's, and what it holds is no formula,
    no markup, and not always in the font that matplotlib measures with.
    """

    def __init__(self, title: str, height: float, width: float = _WIDTH) -> None:
        self._title, self._size = title, (width, height)
        self._words: list[str] = []
        self.figure = new_figure((width / 72.0, height / 72.0))
        self.axes: Any = self.figure.add_subplot()

    def word(self, text: str) -> str:
        """What stands for a text until the picture is written, as long as it is."""
        self._words.append(text)
        return f"~{len(self._words) - 1}~".ljust(len(text), "n")

    def dot(self, x: float, y: float, told: str, **looks: Any) -> None:
        """A mark that says something when it is pointed at."""
        mark = self.axes.scatter([x], [y], zorder=3, **looks)
        mark.set_gid(self.word(told))
        mark.set_in_layout(False)
        mark.set_urls([None, None])  # with one of everything its path would be named, and used from afar

    def domain(self, x: float, y: float, domain: int, told: str = "") -> None:
        """The mark of a source domain."""
        if domain == _ONE_OF_MANY:
            self.dot(x, y, told, marker="|", s=150, color=_COLOUR["d3"], linewidths=1.2, alpha=0.45)
            return
        shape, again = domain % len(_SHAPES), domain // len(_SHAPES)
        colour = _COLOUR[f"d{(shape + again) % len(_SHAPES)}"]
        filling = {"facecolors": colour if again % 2 else "none", "edgecolors": colour}
        self.dot(x, y, told, marker=_SHAPES[shape], s=90, linewidths=2.0, **filling)

    def here(self, x: float, y: float, ends: Sequence[float] = (), told: str = "") -> None:
        """The mark of the target domain, with the ends of its 95 % interval."""
        self.axes.plot(ends, [y] * len(ends), color=_COLOUR["here"], linewidth=3.0, alpha=0.45)
        colours = {"facecolors": _COLOUR["here"], "edgecolors": _COLOUR["paper"]}
        self.dot(x, y, told, marker="o", s=170, linewidths=1.5, **colours)

    def say(self, words: str, at: tuple[float, float], colour: str = "soft", **looks: Any) -> None:
        """Words at a point."""
        looks = {"va": "center", "fontsize": 11.0, "annotation_clip": False, **looks}
        self.axes.annotate(self.word(words), at, color=_COLOUR[colour], **looks)

    def svg(self) -> Markup:
        """The picture as a part of a page, with the page's colours in it."""
        for artist in self.figure.findobj():
            artist.set_clip_on(False)  # what clips has a name, and several pictures are on a page
        drawn = StringIO()
        self.figure.savefig(drawn, format="svg", transparent=True)
        body = drawn.getvalue().partition("</defs>")[2].rpartition("</svg>")[0]
        body = re.sub(r' id="[^~"][^"]*"| transform="rotate\(-0[^"]*"', "", body)
        body = re.sub(r"(\.\d)\d+", r"\1", re.sub(r"\s*\n\s*", " ", body))
        body = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--letters)", body)
        body = re.sub(r"#0000([0-9a-f]{2})", lambda found: f"var(--{_NAMES[int(found[1], 16)]})", body)
        body = re.sub(r'<g id="~(\d+)~n*">|~(\d+)~n*', self._spelled, body)
        width, height = self._size
        size = f'viewBox="0 0 {width:g} {height:g}" style="max-width:{_SCALE * width:.0f}px"'
        title = escape(plain(self._title))
        if not title:
            return Markup(f'<svg {size} class="mini" aria-hidden="true">{body}</svg>')
        return Markup(f'<svg {size} role="img" aria-label="{title}"><title>{title}</title>{body}</svg>')

    def _spelled(self, found: re.Match[str]) -> str:
        pointed = found[1] is not None
        word = escape(plain(self._words[int(found[1] if pointed else found[2])]))
        return f"<g><title>{word}</title>" if pointed else str(word)


def _as_svg(draw: Callable[_Arguments, _Picture]) -> Callable[_Arguments, Markup]:
    """Draw in the style of the page, whatever style the user's own pictures have."""

    @wraps(draw)
    def styled(*args: _Arguments.args, **options: _Arguments.kwargs) -> Markup:
        from matplotlib import style

        with style.context(_STYLE, after_reset=True):
            return draw(*args, **options).svg()

    return styled


@cache
@_as_svg
def key_mark(what: int | str = _ONE_OF_MANY) -> _Picture:
    """A mark for a key: of a source domain, of one of many, or "here"."""
    picture = _Picture("", 16.0, 16.0)
    picture.axes.set(xlim=(-1.0, 1.0), ylim=(-1.0, 1.0), xticks=[], yticks=[])
    picture.figure.set_layout_engine("none")
    picture.axes.set_position((0.0, 0.0, 1.0, 1.0))
    if isinstance(what, int):
        picture.domain(0.0, 0.0, what)
    else:
        picture.here(0.0, 0.0)
    return picture


@dataclass(frozen=True)
class _Line:
    """A line of a dot plot: a value in each source domain (None: unknown) and here, and words beside it."""

    name: str
    strong: bool
    source: Sequence[float | None]
    here: float | None = None
    error: float | None = None
    told: tuple[str, str] | None = None


@_as_svg
def _dot_plot(
    title: str,
    lines: Sequence[_Line],
    domains: Sequence[str],
    limits: tuple[float, float],
    ticks: Mapping[float, str],
    axis: float = 0.0,
    sides: tuple[str, str] = ("", ""),
) -> _Picture:
    """One line per name; what lies outside of the limits is drawn at the edge, with a sign beside it."""
    picture, (low, high) = _Picture(title, 48.0 + _ROW * len(lines)), limits
    axes, many = picture.axes, len(domains) > MOST_MARKS
    short = [one.name if len(one.name) <= _LONGEST else f"{one.name[: _LONGEST - 1]}…" for one in lines]
    axes.set_yticks(range(len(lines)), [picture.word(name) for name in short])
    axes.set(ylim=(len(lines) - 0.5, -0.5), xticks=list(ticks), xticklabels=list(ticks.values()))
    axes.set_xlim(low - 0.04 * (high - low), high + 0.04 * (high - low))
    for k, (line, label) in enumerate(zip(lines, axes.get_yticklabels(), strict=True)):
        label.set_fontweight("bold" if line.strong else "normal")
        # Of two domains one number may say it all.
        names = domains if len(line.source) == len(domains) else [" and ".join(domains)]
        for d, value in enumerate(line.source):
            if value is not None:
                at = min(max(value, low), high)
                picture.domain(at, k, _ONE_OF_MANY if many else d, f"{names[d]}: {value:+.2f}")
                if at != value:
                    picture.say("‹›"[value > high], (at, k - 0.4), ha="center")
        if line.here is not None:
            error = line.error or 0.0
            # No end is outside of the picture: it would leave no room for anything else.
            at, *ends = (min(max(line.here + side * error, low), high) for side in (0.0, -1.96, 1.96))
            picture.here(at, k, ends, f"here: {line.here:+.2f} ± {error:.2f}")
        if line.told is not None:
            words, colour = line.told
            beside = {"xycoords": axes.get_yaxis_transform(), "fontweight": "bold", "fontsize": 12.0}
            picture.say(words, (1.04, k), colour, **beside)
    axes.grid(axis="y")
    axes.axvline(axis, color=_COLOUR["soft"], linewidth=1.0)
    for words, room, ha, step in ((sides[0], axis - low, "right", -5), (sides[1], high - axis, "left", 5)):
        if words and room > 0.2 * (high - low):
            beside = {"xycoords": axes.get_xaxis_transform(), "xytext": (step, 9), "ha": ha}
            picture.say(words, (axis, 1.0), textcoords="offset points", **beside)
    return picture


def draw_features(features: Sequence[FeatureMeaning], domains: Sequence[str]) -> Markup:
    """What each feature says in each source domain and here, and how much of that is left."""
    lines = [
        _Line(
            one.name,
            one.verdict == "changed",
            [one.own.get(name) for name in domains],
            one.here if one.here == one.here else None,  # it may have one value here
            one.error,
            (f"{_TOLD[one.verdict][0]} {left_in_words(one)}", _TOLD[one.verdict][1]),
        )
        for one in features
    ]
    title, sides = (
        "What each unstable feature says in every source domain and here",
        ("← opposite", "as in training →"),
    )
    return _dot_plot(title, lines, domains, _limits(lines), {0.0: "0: says nothing"}, sides=sides)


def draw_drifts(drifts: Sequence[Mapping[str, Any]], domains: Sequence[str], tolerance: float) -> Markup:
    """How far each column drifts in one domain from the others; bold is what was chosen."""
    lines = [
        _Line(one["name"], one["selected"], [value or 0.0 for value in one["by_domain"]]) for one in drifts
    ]
    end = max([tolerance, *(one["drift"] or 0.0 for one in drifts)])
    ticks = {0.0: "0", tolerance: f"{tolerance:g} is tolerated"}
    title = "Drift of each column, by source domain"
    return _dot_plot(title, lines, domains, (0.0, end), ticks, tolerance)


def left_in_words(feature: FeatureMeaning) -> str:
    """How much is left of what a feature said, in few words."""
    if feature.verdict == "cannot tell":
        return "cannot tell"
    if has_turned(feature):
        return "turned"
    return "as before" if feature.verdict == "unchanged" else f"{100 * max(feature.left, 0.0):.0f} % left"


def _limits(lines: Sequence[_Line]) -> tuple[float, float]:
    """From least to most, but no farther than thrice what features usually say.

    Where a feature hardly varies what it is measured to say can be anything.
    """
    own = [sorted(value for value in line.source if value is not None) for line in lines]
    known = [(line.here, line.error or 0.0) for line in lines if line.here is not None]
    usual = [*(abs(values[len(values) // 2]) for values in own), *(abs(here) / 3.0 for here, _ in known[:3])]
    reach = 3.0 * max([*usual, 0.1])
    values = [v for each in own for v in each] + [
        here + side * error for here, error in known for side in (-1.96, 1.96)
    ]
    high = min(max([*values, 0.1]), reach)
    return max(min([*values, -0.12 * high]), -reach), high
