"""The paper's theory as functions: exact distributions, causal graphs, efficiency.

Layer 3. Graphs need the optional extra `sfboost[theory]` (networkx), drawing them matplotlib.
"""

from sfboost.theory.efficiency import CellEfficiency, RowsNeeded, cell_efficiency, rows_needed
from sfboost.theory.examples import (
    EXAMPLES,
    anticausal,
    cause_effect,
    copy_of_stable,
    copy_of_unstable,
    independent_label,
    nearly_complementary,
    product,
    product_of_complement,
    xor,
)
from sfboost.theory.finite import FiniteJoint
from sfboost.theory.graphs import CausalGraph, Condition, FeatureRole, GraphReport, Split
from sfboost.theory.recovery import Recovery, recover
from sfboost.theory.suboptimality import (
    ExactAccuracies,
    SubOptimality,
    enumerate_suboptimality,
    exact_accuracies,
    suboptimality,
)

__all__ = [
    "EXAMPLES",
    "CausalGraph",
    "CellEfficiency",
    "Condition",
    "ExactAccuracies",
    "FeatureRole",
    "FiniteJoint",
    "GraphReport",
    "Recovery",
    "RowsNeeded",
    "Split",
    "SubOptimality",
    "anticausal",
    "cause_effect",
    "cell_efficiency",
    "copy_of_stable",
    "copy_of_unstable",
    "enumerate_suboptimality",
    "exact_accuracies",
    "independent_label",
    "nearly_complementary",
    "product",
    "product_of_complement",
    "recover",
    "rows_needed",
    "suboptimality",
    "xor",
]
