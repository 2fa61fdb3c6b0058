"""A user's causal graph against conditions 1)–6) of the paper (App. D.2, "Possible causal DAGs").

An independence read off the graph holds in every distribution with that graph; a dependence holds in all
but exceptional ones (faithfulness). Needs networkx: the optional extra `sfboost[theory]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sfboost.theory.separation import d_separated, directed_graph, networkx, open_path

# 2^12 stable sets are examined in seconds; beyond that the answer would take minutes.
_MOST_FEATURES = 12


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
        ancestors = networkx().ancestors(self.graph, self.domain) & {*stable, *unstable, self.label}
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
        nx, graph = networkx(), self.graph
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
        return name in networkx().descendants(without, self.domain)

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
        from sfboost.theory.drawing import draw_graph

        return draw_graph(self, report, ax)
