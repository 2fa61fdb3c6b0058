"""Which correction a learned model adapts with."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from sfboost.leakage.stress import AGREEMENTS, StressTable
from sfboost.torch.predictor import best_correction

NAMES = ("stable", "posthoc", "likelihood")


def _table(*losses):
    return StressTable(NAMES, AGREEMENTS, np.empty((3, 5)), np.array(losses))


def test_how_much_worse_than_f_s_a_correction_is_does_not_count():
    """The stress domains of CE-DD, unbalanced, seed 3: one fails once, post hoc nearly everywhere."""
    stable = np.full(5, 0.28)
    posthoc, likelihood = [0.240, 0.295, 0.757, 0.872, 0.294], [0.159, 0.898, 0.688, 0.496, 0.248]
    assert np.mean(posthoc) < np.mean(likelihood)
    assert best_correction(_table(stable, posthoc, likelihood)) == "likelihood"


def test_the_correction_that_is_better_where_both_are_of_use_is_taken():
    losses = np.full(5, 0.6), np.array([0.2, 0.4, 0.6, 0.5, 0.3]), np.array([0.2, 0.5, 0.9, 0.5, 0.3])
    assert best_correction(_table(*losses)) == "posthoc"
    assert best_correction(_table(losses[0], losses[2], losses[1])) == "likelihood"


def test_where_neither_is_of_use_it_is_the_papers():
    assert best_correction(_table(np.full(5, 0.1), np.full(5, 0.9), np.full(5, 0.5))) == "posthoc"
