"""The paper's theorems on exact finite distributions: recovery, sub-optimality, counter-examples."""

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
    "ExactAccuracies",
    "FiniteJoint",
    "Recovery",
    "SubOptimality",
    "anticausal",
    "cause_effect",
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
