"""Conditions 1)–6) on graphs: the paper's proposition by enumeration of all small DAGs."""

from itertools import combinations, permutations, product

import networkx as nx
import pytest

from sfboost_lab.theory.graphs import CausalGraph, d_separated, open_path

# The figure of App. D.2: solid edges, and the dashed and dotted ones that may be added.
SOLID = [("C", "Y"), ("Y", "F"), ("Y", "U"), ("S", "F")]


def all_dags(nodes):
    """Every DAG on the nodes, once."""
    seen = set()
    for order in permutations(nodes):
        pairs = list(combinations(order, 2))
        for keep in product((False, True), repeat=len(pairs)):
            seen.add(frozenset(pair for pair, kept in zip(pairs, keep, strict=True) if kept))
    return seen


def graphs_with_root(features):
    """Every DAG over E, Y and the features in which nothing acts on E."""
    others = ("Y", *features)
    for edges in all_dags(others):
        for keep in product((False, True), repeat=len(others)):
            extra = {("E", node) for node, kept in zip(others, keep, strict=True) if kept}
            nodes = {node for edge in edges | extra for node in edge}
            if nodes >= {"E", *others}:  # a feature on no edge is no part of a story
                yield CausalGraph(sorted(edges | extra))


@pytest.mark.parametrize("shifts", list(product((False, True), repeat=3)))
def test_the_papers_figure_satisfies_all_conditions_if_e_acts_on_c_or_u(shifts):
    extra = [("E", node) for node, kept in zip("CUS", shifts, strict=True) if kept]
    if not extra:
        extra = [("E", "Z")]
    report = CausalGraph(SOLID + extra).check(["C", "F", "S"], ["U"])
    assert report.sfb_applies
    assert report.worthwhile == (shifts[0] or shifts[1])
    assert {role.name: role.role for role in report.roles} == {
        "C": "cause",
        "F": "effect",
        "S": "spouse",
        "U": "effect",
    }


def test_proposition_every_dag_on_four_nodes_that_passes_has_x_u_as_effect_and_x_s_as_cause_or_effect():
    passing = [g for g in graphs_with_root(("S", "U")) if g.check("S", "U").worthwhile]
    assert passing
    for graph in passing:
        stable, unstable = graph.check("S", "U").roles
        assert unstable.role == "effect"
        assert stable.role in ("cause", "effect")
        assert stable.invariant or stable.role == "cause"
    found = {frozenset(graph.edges) for graph in passing}
    cause_effect = {("S", "Y"), ("Y", "U")}
    anticausal = {("Y", "S"), ("Y", "U"), ("E", "U")}
    expected = [anticausal, *(cause_effect | shift for shift in ({("E", "S")}, {("E", "U")}))]
    expected.append(cause_effect | {("E", "S"), ("E", "U")})
    assert found == {frozenset(edges) for edges in expected}


def test_proposition_with_two_stable_features_those_that_add_information_are_causes_effects_or_spouses():
    informative, redundant = set(), set()
    for graph in graphs_with_root(("S", "T", "U")):
        if not d_separated(graph.graph, "E", "Y", "ST") or not graph.check(("S", "T"), "U").worthwhile:
            continue
        *stable, unstable = graph.check(("S", "T"), "U").roles
        assert unstable.role == "effect"
        for role, other in zip(stable, "TS", strict=True):
            if d_separated(graph.graph, role.name, "Y", other):
                redundant.add(role.role)
                continue
            informative.add(role.role)
            if role.role == "effect":
                # The paper's "not a descendant of E", read as: by no path that avoids Y and the other
                # stable feature.
                cut = graph.graph
                cut.remove_nodes_from({"Y", other})
                assert role.name not in nx.descendants(cut, "E")
    assert informative == {"cause", "effect", "spouse"}
    # A feature that says nothing more may have any place but a spouse's, a shifted effect's included.
    assert redundant == {"cause", "effect", "sibling", "unrelated"}


def test_effects_may_be_descendants_of_e_through_y():
    report = CausalGraph([("E", "C"), ("C", "Y"), ("Y", "F"), ("Y", "U"), ("E", "U")]).check(["C", "F"], "U")
    assert report.worthwhile
    assert next(role for role in report.roles if role.name == "F").invariant


def test_a_sibling_through_a_hidden_invariant_cause_is_stable_and_through_a_shifting_one_is_not():
    edges = [("H", "Y"), ("H", "X"), ("Y", "U"), ("E", "U")]
    good = CausalGraph(edges, hidden="H")
    role = good.roles(["X"])[0]
    assert (role.role, role.through, role.hidden, role.invariant) == ("sibling", ("H",), True, True)
    assert good.check("X", "U").worthwhile
    bad = CausalGraph([*edges, ("E", "H")], hidden=["H"])
    assert not bad.roles(["X"])[0].invariant
    report = bad.check("X", "U")
    assert [c.number for c in report.conditions if not c.holds] == [4]
    assert "E → H → Y is open" in str(report)


def test_complementarity_fails_with_the_path_that_breaks_it():
    report = CausalGraph([("Y", "S"), ("Y", "U"), ("E", "U"), ("S", "U")]).check("S", "U")
    assert not report.sfb_applies
    broken = [c for c in report.conditions if not c.holds]
    assert 3 in [c.number for c in broken]
    assert "S → U is open" in broken[0].sentence


def test_a_domain_that_something_acts_on_breaks_the_first_condition():
    report = CausalGraph([("S", "E"), ("S", "Y"), ("Y", "U"), ("E", "U")]).check("S", "U")
    assert not report.conditions[0].holds
    assert "'S'" in report.conditions[0].sentence


def test_splits_finds_the_figures_sets_and_only_sets_that_pass():
    graph = CausalGraph([*SOLID, ("E", "C"), ("E", "U"), ("E", "S")])
    splits = graph.splits()
    assert splits[0].stable == ("C", "F", "S")
    assert splits[0].unstable == ("U",)
    everything = graph.splits(largest=False)
    assert set(splits) <= set(everything)
    passing = {
        frozenset(s)
        for size in (1, 2, 3)
        for s in combinations(graph.features, size)
        if "U" not in s and graph.check(s, "U").worthwhile
    }
    assert {frozenset(s.stable) for s in everything if s.unstable == ("U",)} <= passing
    assert all(graph.check(s.stable, s.unstable).worthwhile for s in everything)


def test_an_open_path_exists_exactly_where_networkx_finds_no_separation():
    nodes = ("A", "B", "C", "D")
    for edges in all_dags(nodes):
        graph = nx.DiGraph(sorted(edges))
        graph.add_nodes_from(nodes)
        for given in ((), ("C",), ("C", "D")):
            separated = d_separated(graph, ("A",), ("B",), given)
            assert separated == (open_path(graph, ("A",), ("B",), given) is None)


def test_the_users_graph_is_not_changed():
    mine = nx.DiGraph([("E", "U"), ("Y", "U"), ("Y", "S")])
    before = set(mine.edges), set(mine.nodes)
    CausalGraph(mine).check("S", "U")
    CausalGraph(mine).splits()
    assert (set(mine.edges), set(mine.nodes)) == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CausalGraph([("Y", "X"), ("X", "Y"), ("E", "Y")]), "cycle"),
        (lambda: CausalGraph([("Y", "X")]), "domain 'E' is on no edge"),
        (lambda: CausalGraph([("E", "X"), ("X", "Y")], hidden=["H"]), "hidden variable 'H'"),
        (lambda: CausalGraph([("E", "X"), ("X", "Y")]).check("Q", "X"), "observed features"),
        (lambda: CausalGraph([("E", "X"), ("X", "Y")]).check("X", "X"), "both sets"),
        (lambda: CausalGraph([("E", "X"), ("X", "Y")]).check([], "X"), "must name"),
        (lambda: CausalGraph(["E"]), "pairs"),
        (lambda: CausalGraph([("E", f"X{i}") for i in range(13)] + [("X1", "Y")]).splits(), "up to 12"),
    ],
)
def test_graphs_that_make_no_sense_are_refused_with_a_remedy(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_drawing_shows_every_node_edge_and_role():
    graph = CausalGraph([*SOLID, ("E", "C"), ("E", "U")])
    ax = graph.draw(graph.check(["C", "F", "S"], "U"))
    captions = {text.get_text() for text in ax.texts if text.get_text()}
    assert captions == {"E", "Y", "U", "C\n(S,C)", "F\n(S,E)", "S\n(S,S)"}
    assert len(ax.texts) == len(captions) + len(graph.edges)
    assert ax.get_title() == "SFB applies."
    ax.figure.canvas.draw()
    colours = {
        text.get_text()[0]: text.get_bbox_patch().get_facecolor() for text in ax.texts if text.get_text()
    }
    assert colours["C"] == colours["F"] == colours["S"] != colours["U"] != colours["Y"]
    plain = graph.draw(ax=ax.figure.add_subplot())
    assert "U" in {text.get_text() for text in plain.texts}
