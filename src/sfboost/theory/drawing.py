"""A causal graph as a picture, in the colours of the paper's figure (App. D.2)."""

from __future__ import annotations

from math import cos, pi, sin
from typing import TYPE_CHECKING, Any

from sfboost.figures import new_figure
from sfboost.theory.separation import networkx

if TYPE_CHECKING:
    from sfboost.theory.graphs import CausalGraph, GraphReport

_COLOURS = {"stable": "#b3c6ff", "unstable": "#ffec99", "other": "#ffffff"}
_LETTER = {"cause": "C", "effect": "E", "spouse": "S", "sibling": "sib"}


def draw_graph(causal: CausalGraph, report: GraphReport | None = None, ax: Any = None) -> Any:
    """Draw nodes on a circle; a stable feature says its role under its name."""
    ax = new_figure((5, 5)).add_subplot() if ax is None else ax
    graph = causal.graph
    places = _places(graph)
    nodes = {
        name: ax.text(x, y, _caption(name, report), ha="center", va="center", bbox=_box(name, causal, report))
        for name, (x, y) in places.items()
    }
    for start, end in graph.edges:
        style = {
            "arrowstyle": "-|>",
            "color": "0.3",
            "linestyle": "--" if start == causal.domain else "-",
            # The arrow ends at the circles' borders, whatever the captions' size.
            "patchA": nodes[start].get_bbox_patch(),
            "patchB": nodes[end].get_bbox_patch(),
        }
        ax.annotate("", xy=places[end], xytext=places[start], arrowprops=style)
    ax.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal")
    ax.set_axis_off()
    if report is not None:
        ax.set_title(str(report).split("\n", maxsplit=1)[0])
    return ax


def _places(graph: Any) -> dict[str, tuple[float, float]]:
    """Nodes on a circle, causes before effects, clockwise from the top: no edge can cross a node."""
    names = list(networkx().lexicographical_topological_sort(graph, key=str))
    angles = (pi / 2.0 - 2.0 * pi * i / len(names) for i in range(len(names)))
    return {name: (cos(angle), sin(angle)) for name, angle in zip(names, angles, strict=True)}


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
