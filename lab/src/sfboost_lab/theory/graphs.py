"""A user's causal graph against conditions 1)–6) of the paper (App. D.2, "Possible causal DAGs").

An independence read off the graph holds in every distribution with that graph; a dependence holds in all
but exceptional ones (faithfulness).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, islice, pairwise
from math import cos, pi, sin
from typing import Any

import networkx as nx

from sfboost.figures import new_figure

# 2^12 stable sets are examined in seconds; beyond that the answer would take minutes.
_MOST_FEATURES = 12
# Enough for any graph a person draws; a dense machine-made one gets no path, only the verdict.
_MOST_PATHS = 20_000
_COLOURS = {"stable": "#b3c6ff", "unstable": "#ffec99", "other": "#ffffff"}
_LETTER = {"cause": "C", "effect": "E", "spouse": "S", "sibling": "sib"}


@dataclass(frozen=True)
class Condition:
    """One of the six conditions.

    Attributes
    ----------
    number : int
    statement : str
        In symbols, with the user's names.
    holds : bool
    sentence : str
        What it means here; if an independence fails, a path that carries the dependence.
    """

    number: int
    statement: str
    holds: bool
    sentence: str

    def __str__(self) -> str:
        return f"{self.number}) {'yes' if self.holds else 'NO '}  {self.statement}: {self.sentence}"


@dataclass(frozen=True)
class FeatureRole:
    """What a feature is to the label.

    Attributes
    ----------
    name : str
    role : {"cause", "effect", "spouse", "sibling", "unrelated"}
        Ancestor of Y; descendant of Y; ancestor of an effect of Y; descendant of a cause of Y; none.
    through : tuple of str
        For a spouse the effects it shares with Y, for a sibling the nearest common causes.
    hidden : bool
        A sibling all of whose common causes are unobserved.
    invariant : bool
        For a sibling: E does not act on its common causes. For the others: E has no directed path to
        the feature that avoids Y.
    stable_alone : bool
        E ⟂ Y given this feature alone.
    """

    name: str
    role: str
    through: tuple[str, ...]
    hidden: bool
    invariant: bool
    stable_alone: bool


@dataclass(frozen=True)
class Split:
    """A choice of stable and unstable features under which all six conditions hold."""

    stable: tuple[str, ...]
    unstable: tuple[str, ...]


@dataclass(frozen=True)
class GraphReport:
    """Conditions 1)–6) for one choice of stable and unstable features.

    Attributes
    ----------
    stable, unstable : tuple of str
    conditions : tuple of Condition
    roles : tuple of FeatureRole
        Of the stable and the unstable features.
    """

    stable: tuple[str, ...]
    unstable: tuple[str, ...]
    conditions: tuple[Condition, ...]
    roles: tuple[FeatureRole, ...]

    @property
    def sfb_applies(self) -> bool:
        """Conditions 1)–4): Theorems 4.4 and 4.6 hold."""
        return all(condition.holds for condition in self.conditions[:4])

    @property
    def worthwhile(self) -> bool:
        """All six: X_U is unstable and says something that X_S does not."""
        return all(condition.holds for condition in self.conditions)

    def __str__(self) -> str:
        verdict = "SFB applies" if self.sfb_applies else "SFB's theorems do not apply"
        if self.sfb_applies and not self.worthwhile:
            verdict += ", but there is no reason to prefer it"
        lines = [f"{verdict}.", *map(str, self.conditions)]
        for role in self.roles:
            via = f" through {', '.join(role.through)}" if role.through else ""
            lines.append(f"   {role.name}: {role.role}{via}{' (hidden)' if role.hidden else ''}")
        return "\n".join(lines)


@dataclass(frozen=True)
class CausalGraph:
    """A causal DAG over a domain variable, a label and features.

    Parameters
    ----------
    edges : iterable of (cause, effect), or networkx.DiGraph
    label, domain : str
        Names of Y and of E.
    hidden : iterable of str
        Variables that are not observed.

    Notes
    -----
    `check(stable, unstable)` tests a choice of features, `splits()` finds all choices, `roles()` names
    each feature's place, `draw()` draws.
    """

    edges: Any
    label: str = "Y"
    domain: str = "E"
    hidden: Any = ()

    def __post_init__(self) -> None:
        graph = directed_graph(self.edges)
        object.__setattr__(self, "edges", tuple(graph.edges))
        object.__setattr__(
            self, "hidden", (self.hidden,) if isinstance(self.hidden, str) else tuple(self.hidden)
        )
        for what, name in (
            ("label", self.label),
            ("domain", self.domain),
            *(("hidden variable", h) for h in self.hidden),
        ):
            if name not in graph:
                raise ValueError(
                    f"The {what} {name!r} is on no edge; the graph has {sorted(map(str, graph))}: "
                    "name it as in the edges, or add its edges."
                )

    @property
    def graph(self) -> Any:
        """The networkx graph."""
        return directed_graph(self.edges)

    @property
    def features(self) -> tuple[str, ...]:
        """Observed variables but the label and the domain, in the order of the edges."""
        apart = {self.label, self.domain, *self.hidden}
        return tuple(name for name in self.graph if name not in apart)

    def check(self, stable: Iterable[str] | str, unstable: Iterable[str] | str) -> GraphReport:
        """Test conditions 1)–6) for the given stable and unstable features."""
        chosen, other = self._names(stable, "stable"), self._names(unstable, "unstable")
        if set(chosen) & set(other):
            raise ValueError(
                f"{sorted(set(chosen) & set(other))} are in both sets: put each feature in one of them."
            )
        return GraphReport(chosen, other, self._conditions(chosen, other), self.roles(chosen + other))

    def _names(self, given: Iterable[str] | str, what: str) -> tuple[str, ...]:
        names = (given,) if isinstance(given, str) else tuple(given)
        unknown = [name for name in names if name not in self.features]
        if unknown or not names:
            raise ValueError(
                f"{what}={list(names)} must name observed features of the graph, which are "
                f"{list(self.features)}."
            )
        return names

    def _conditions(self, stable: tuple[str, ...], unstable: tuple[str, ...]) -> tuple[Condition, ...]:
        y, e = (self.label,), (self.domain,)
        ancestors = nx.ancestors(self.graph, self.domain) & {*stable, *unstable, self.label}
        root = Condition(
            1,
            f"{self.domain} is a root",
            not ancestors,
            f"{sorted(ancestors)} act on it" if ancestors else "nothing here acts on it",
        )
        return (
            root,
            self._dependent(2, stable, y, e, "the stable features are informative"),
            self._independent(3, stable, unstable, y + e, "the feature sets are complementary"),
            self._independent(4, e, y, stable, "the stable features are stable"),
            self._dependent(5, e, y, unstable, "the unstable features are unstable"),
            self._dependent(6, unstable, y, stable, "the unstable features add information"),
        )

    def _independent(
        self, number: int, a: tuple[str, ...], b: tuple[str, ...], given: tuple[str, ...], meaning: str
    ) -> Condition:
        holds = d_separated(self.graph, a, b, given)
        statement = f"{','.join(a)} ⟂ {','.join(b)} | {','.join(given)}"
        if holds:
            return Condition(number, statement, True, meaning)
        path = open_path(self.graph, a, b, given)
        return Condition(number, statement, False, f"not so that {meaning}: {path} is open")

    def _dependent(
        self, number: int, a: tuple[str, ...], b: tuple[str, ...], given: tuple[str, ...], meaning: str
    ) -> Condition:
        connected = not d_separated(self.graph, a, b, given)
        statement = f"{','.join(a)} not⟂ {','.join(b)} | {','.join(given)}"
        return Condition(number, statement, connected, meaning if connected else f"not so that {meaning}")

    def roles(self, features: Iterable[str] | None = None) -> tuple[FeatureRole, ...]:
        """The place of each feature: cause, effect, spouse, sibling (App. D.2), or unrelated."""
        return tuple(self._role(name) for name in (self.features if features is None else features))

    def _role(self, name: str) -> FeatureRole:
        graph = self.graph
        causes, effects = nx.ancestors(graph, self.label), nx.descendants(graph, self.label)
        own_ancestors = nx.ancestors(graph, name)
        # E itself is no common *cause*: two things that differ by domain are not siblings.
        common = (own_ancestors & causes) - {self.domain}
        nearest = tuple(sorted(c for c in common if not nx.descendants(graph, c) & common))
        shared = tuple(sorted(nx.descendants(graph, name) & effects))
        moved = nx.descendants(graph, self.domain)
        role, through, hidden, invariant = "unrelated", (), False, not self._bypasses_label(name)
        if name in causes:
            role = "cause"
        elif name in effects:
            role = "effect"
        elif shared:
            role, through = "spouse", shared
        elif nearest:
            role, through = "sibling", nearest
            hidden = set(nearest) <= set(self.hidden)
            invariant = not set(nearest) & moved and not self._bypasses_label(name)
        alone = d_separated(graph, (self.domain,), (self.label,), (name,))
        return FeatureRole(name, role, through, hidden, invariant, alone)

    def _bypasses_label(self, name: str) -> bool:
        """Whether E reaches the feature by a directed path that avoids Y."""
        without = self.graph
        without.remove_node(self.label)
        return name in nx.descendants(without, self.domain)

    def splits(self, *, largest: bool = True) -> tuple[Split, ...]:
        """All choices of stable features under which conditions 1)–6) hold.

        With each stable set goes the largest unstable set that is complementary to it: by the
        composition property of d-separation that is every feature that is complementary alone.

        Parameters
        ----------
        largest : bool
            Leave out stable sets that are part of another one with the same unstable set.
        """
        if len(self.features) > _MOST_FEATURES:
            raise ValueError(
                f"The graph has {len(self.features)} observed features; all sets of up to "
                f"{_MOST_FEATURES} can be searched: test the sets you have in mind with `check`."
            )
        graph = self.graph
        found = []
        for size in range(len(self.features), 0, -1):
            for stable in combinations(self.features, size):
                if not d_separated(graph, (self.domain,), (self.label,), stable):
                    continue
                given = (self.label, self.domain)
                unstable = tuple(
                    u for u in self.features if u not in stable and d_separated(graph, stable, (u,), given)
                )
                if unstable and all(c.holds for c in self._conditions(stable, unstable)):
                    found.append(Split(stable, unstable))
        if not largest:
            return tuple(found)
        return tuple(
            split
            for split in found
            if not any(set(split.stable) < set(o.stable) and split.unstable == o.unstable for o in found)
        )

    def draw(self, report: GraphReport | None = None, ax: Any = None) -> Any:
        """Draw the graph with matplotlib: stable features blue, unstable yellow, hidden dashed.

        Parameters
        ----------
        report : GraphReport, optional
            Whose stable and unstable features to colour.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        return _draw(self, report, ax)


def directed_graph(edges: Any) -> Any:
    """A fresh networkx.DiGraph of the edges; refused if it has a cycle."""
    graph = nx.DiGraph()
    try:
        graph.add_edges_from(edges.edges if hasattr(edges, "edges") else edges)
    except (nx.NetworkXError, TypeError):
        raise ValueError(
            f"edges={edges!r} are not pairs: pass (cause, effect) pairs such as [('E', 'X1'), ('X1', 'Y')]."
        ) from None
    if not nx.is_directed_acyclic_graph(graph):
        cycle = " → ".join(str(a) for a, _ in nx.find_cycle(graph))
        raise ValueError(f"The graph has the cycle {cycle} → …: a causal graph must be acyclic.")
    return graph


def d_separated(graph: Any, a: Iterable[str], b: Iterable[str], given: Iterable[str]) -> bool:
    """Whether `given` d-separates every node of `a` from every node of `b`."""
    return bool(nx.is_d_separator(graph, set(a), set(b), set(given)))


def open_path(graph: Any, a: Iterable[str], b: Iterable[str], given: Iterable[str]) -> str | None:
    """A shortest path that is open given `given`, as text; None if there is none.

    A path is open if no non-collider on it is given, and every collider on it is given or has a
    descendant that is.
    """
    known = set(given)
    skeleton = graph.to_undirected()
    opened = {node for node in graph if node in known or nx.descendants(graph, node) & known}
    found: list[list[str]] = []
    for source in a:
        for target in b:
            paths = islice(nx.all_simple_paths(skeleton, source, target), _MOST_PATHS)
            found.extend(path for path in paths if _is_open(graph, path, known, opened))
    return _arrows(graph, min(found, key=lambda path: (len(path), path))) if found else None


def _is_open(graph: Any, path: list[str], known: set[str], opened: set[str]) -> bool:
    for before, node, after in zip(path, path[1:], path[2:], strict=False):
        collider = graph.has_edge(before, node) and graph.has_edge(after, node)
        if (collider and node not in opened) or (not collider and node in known):
            return False
    return True


def _arrows(graph: Any, path: list[str]) -> str:
    steps = [f" {'→' if graph.has_edge(a, b) else '←'} {b}" for a, b in pairwise(path)]
    return str(path[0]) + "".join(steps)


def _draw(causal: CausalGraph, report: GraphReport | None = None, ax: Any = None) -> Any:
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
    names = list(nx.lexicographical_topological_sort(graph, key=str))
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
