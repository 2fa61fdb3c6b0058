"""Optional extras are asked for by name, and only where they are needed."""

import subprocess
import sys

import pytest

from sfboost.theory import CausalGraph


def test_without_networkx_a_graph_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"pip install 'sfboost\[theory\]'"):
        CausalGraph([("E", "X"), ("X", "Y")])


def test_without_matplotlib_drawing_says_how_to_get_it(monkeypatch):
    pytest.importorskip("networkx", reason="causal graphs need the optional extra sfboost[theory]")
    graph = CausalGraph([("E", "X"), ("X", "Y")])
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'sfboost\[app\]'"):
        graph.draw()


def test_importing_the_theory_loads_neither():
    code = "import sys, sfboost.theory; assert not {'networkx', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
