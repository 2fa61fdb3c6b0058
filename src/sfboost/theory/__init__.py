"""Questions before there are new rows: does my causal graph allow it, how many rows do I need.

Layer 3. Graphs need the optional extra `sfboost[theory]` (networkx), drawing them matplotlib. The theorems
themselves, on exact distributions, are in `sfboost_lab.theory`.
"""

from sfboost.theory.efficiency import CellEfficiency, RowsNeeded, cell_efficiency, rows_needed
from sfboost.theory.graphs import CausalGraph, Condition, FeatureRole, GraphReport, Split

__all__ = [
    "CausalGraph",
    "CellEfficiency",
    "Condition",
    "FeatureRole",
    "GraphReport",
    "RowsNeeded",
    "Split",
    "cell_efficiency",
    "rows_needed",
]
