"""Narrow heads that are fitted together: the same heads, penalties and gains as by the other solver."""

from dataclasses import replace

import numpy as np
import pytest

from sfboost.adaptation import narrow, regularisation
from sfboost.adaptation.fitting import fit_unstable
from sfboost.adaptation.problem import UNKNOWN, Problem
from sfboost.adaptation.regularisation import cross_fit
from sfboost.adaptation.settings import Choices
from sfboost.heads import SoftLogisticRegression

TOGETHER = Choices(together=True)


def draw(n_rows=600, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    z = 1.5 * np.eye(n_classes)[y] + rng.normal(size=(n_rows, n_classes))
    stable = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    X = np.eye(n_classes)[y][:, 1:] + rng.normal(size=(n_rows, n_classes - 1))
    return Problem.unlabelled(stable, np.column_stack([X, rng.normal(size=n_rows)])), y


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n_labelled", [0, 50, 600])
def test_heads_and_cross_fits_are_those_of_the_other_solver(monkeypatch, n_classes, n_labelled):
    monkeypatch.setattr(regularisation, "_TOLERANCE", 1e-8)  # else they stop at different places
    problem, y = draw(n_classes=n_classes)
    known = np.full(600, UNKNOWN)
    known[:n_labelled] = y[:n_labelled]
    problem = replace(problem, known=known)
    here, chosen = fit_unstable(problem, TOGETHER, 0.01), cross_fit(problem, TOGETHER)
    there, wanted = fit_unstable(problem, Choices(), 0.01), cross_fit(problem, Choices())
    assert np.allclose(here.log_proba(problem.X), there.log_proba(problem.X), atol=1e-6)
    assert here.history == pytest.approx(there.history, abs=1e-8)
    assert chosen.l2 == wanted.l2
    assert chosen.gains == pytest.approx(wanted.gains, abs=1e-7)


def test_what_is_not_narrow_is_left_to_the_other_solver():
    problem, _ = draw()
    assert narrow.narrow(problem, TOGETHER)
    assert not narrow.narrow(problem, Choices())
    assert narrow.narrow(problem, Choices(together=True, head=SoftLogisticRegression(l2=0.1)))
    wide = replace(problem, X=np.ones((600, 40)))
    assert not narrow.narrow(wide, TOGETHER)
    assert not narrow.narrow(replace(problem, centre=np.zeros((1, 3))), TOGETHER)
    assert not narrow.narrow(problem, Choices(together=True, correction="posthoc", rounds=1))


def test_a_start_from_which_newton_is_lost_still_gives_a_head(monkeypatch):
    problem, _ = draw()
    found = fit_unstable(problem, TOGETHER, 0.01)
    monkeypatch.setattr(narrow.Narrow, "fit", lambda self, l2, starts, tolerance: [None] * len(starts))
    again = fit_unstable(problem, TOGETHER, 0.01)
    assert np.allclose(found.log_proba(problem.X), again.log_proba(problem.X), atol=1e-6)
