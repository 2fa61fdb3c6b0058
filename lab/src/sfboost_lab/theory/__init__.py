"""The paper's theorems on exact finite distributions, causal graphs, what an unlabelled row is worth."""

from sfboost_lab.theory.efficiency import CellEfficiency, cell_efficiency
from sfboost_lab.theory.examples import (
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
from sfboost_lab.theory.finite import FiniteJoint
from sfboost_lab.theory.recovery import Recovery, recover
from sfboost_lab.theory.suboptimality import (
    ExactAccuracies,
    SubOptimality,
    enumerate_suboptimality,
    exact_accuracies,
    suboptimality,
)

__all__ = [
    "EXAMPLES",
    "CellEfficiency",
    "ExactAccuracies",
    "FiniteJoint",
    "Recovery",
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
    "suboptimality",
    "xor",
]
