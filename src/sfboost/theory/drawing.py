"""A causal graph as a picture, in the colours of the paper's figure (App. D.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfboost.theory.separation import networkx

if TYPE_CHECKING:
    from sfboost.theory.graphs import CausalGraph, GraphReport

_COLOURS = {"stable": "#b3c6ff", "unstable": "#ffec99", "other": "#ffffff"}
_LETTER = {"cause": "C", "effect": "E", "spouse": "S", "sibling": "sib"}


def draw_graph(causal: CausalGraph, report: GraphReport | None = None, ax: Any = None) -> Any:
    """Draw nodes by generation from left to right; a stable feature says its role under its name."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "Drawing needs matplotlib, which is not installed: pip install 'sfboost[app]'."
        ) from None
    if ax is None:
        # A Figure of its own, not pyplot: nothing global is touched.
        ax = Figure(figsize=(6, 4), layout="constrained").add_subplot()
    graph = causal.graph
    places = _places(graph)
    for start, end in graph.edges:
        ax.annotate(
            "",
            xy=places[end],
            xytext=places[start],
            arrowprops={
                "arrowstyle": "-|>",
                "shrinkA": 22,
                "shrinkB": 22,
                "color": "0.3",
                # A slight bend keeps an edge that skips a generation off the nodes between.
                "connectionstyle": "arc3,rad=0.12",
                "linestyle": "--" if start == causal.domain else "-",
            },
        )
    for name, (x, y) in places.items():
        ax.text(x, y, _caption(name, report), ha="center", va="center", bbox=_box(name, causal, report))
    xs, ys = zip(*places.values(), strict=True)
    ax.set_xlim(min(xs) - 0.6, max(xs) + 0.6)
    ax.set_ylim(min(ys) - 0.6, max(ys) + 0.6)
    ax.set_axis_off()
    if report is not None:
        ax.set_title(str(report).split("\n", maxsplit=1)[0])
    return ax


def _places(graph: Any) -> dict[str, tuple[float, float]]:
    places = {}
    for x, generation in enumerate(networkx().topological_generations(graph)):
        names = sorted(generation, key=str)
        for y, name in enumerate(names):
            # Half a step up or down on odd generations, so that straight lines do not meet.
            places[name] = (float(x), (len(names) - 1) / 2.0 - y + 0.25 * (x % 2))
    return places


def _caption(name: str, report: GraphReport | None) -> str:
    roles = {} if report is None else {role.name: role.role for role in report.roles}
    if report is None or name not in report.stable:
        return str(name)
    letter = _LETTER.get(roles[name])
    return f"{name}\n(S,{letter})" if letter else str(name)


def _box(name: str, causal: CausalGraph, report: GraphReport | None) -> dict[str, Any]:
    kind = "other"
    if report is not None:
        kind = "stable" if name in report.stable else "unstable" if name in report.unstable else "other"
    dashed = name == causal.domain or name in causal.hidden
    return {
        "boxstyle": "circle,pad=0.35",
        "facecolor": _COLOURS[kind],
        "edgecolor": "0.2",
        "linestyle": "--" if dashed else "-",
    }
