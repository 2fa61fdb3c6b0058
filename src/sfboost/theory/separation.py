"""d-separation by networkx, and the paths that explain its answer."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, pairwise
from typing import Any

# Enough for any graph a person draws; a dense machine-made one gets no path, only the verdict.
_MOST_PATHS = 20_000


def networkx() -> Any:
    """The networkx package, or a sentence that says how to get it."""
    try:
        import networkx
    except ImportError:
        raise ImportError(
            "Causal graphs need networkx, which is not installed: pip install 'sfboost[theory]'."
        ) from None
    return networkx


def directed_graph(edges: Any) -> Any:
    """A fresh networkx.DiGraph of the edges; refused if it has a cycle."""
    nx = networkx()
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
    return bool(networkx().is_d_separator(graph, set(a), set(b), set(given)))


def open_path(graph: Any, a: Iterable[str], b: Iterable[str], given: Iterable[str]) -> str | None:
    """A shortest path that is open given `given`, as text; None if there is none.

    A path is open if no non-collider on it is given, and every collider on it is given or has a
    descendant that is.
    """
    nx, known = networkx(), set(given)
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
