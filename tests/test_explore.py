"""The interactive page: its formulas are those of the theory, in a real browser."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from chromium import Chromium, find_chromium
from scipy.stats import binom

from sfboost.marginal import combine
from sfboost_lab.theory import FiniteJoint, recover

pytestmark = pytest.mark.browser
PAGE = Path(__file__).parents[1] / "docs" / "explore.html"
CASES = [
    {"stable": a, "agreement": r, "rows": n, "leak": leak}
    for a, r, n, leak in product((0.6, 0.75, 0.93), (0.05, 0.3, 0.5, 0.85, 1.0), (10, 200), (0.0, 0.4, -0.5))
]
TRAINING = 0.85


@pytest.fixture(scope="module")
def browser():
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium is installed")
    with Chromium(path) as browser:
        yield browser


def joint_of(a, r, leak):
    """The law of (X_S, X_U, Y) with as much dependence within a class as `leak` says."""
    most = min(a * (1 - r), r * (1 - a)) if leak >= 0 else min(a * r, (1 - a) * (1 - r))
    c = leak * most
    # By whether the stable and whether the unstable feature is right.
    right = np.array([[(1 - a) * (1 - r) + c, (1 - a) * r - c], [a * (1 - r) - c, a * r + c]])
    return FiniteJoint(np.maximum(np.stack([right[::-1, ::-1], right], axis=2), 0.0) / 2)


def accuracy(joint, q):
    """Of the most probable class by C_p, ties shared, where f_U is believed to be q."""
    stable = joint.stable_posterior
    unstable = np.array([[q, 1 - q], [1 - q, q]])
    mass = joint.table
    total = 0.0
    for s, u in product(range(2), range(2)):
        proba = combine(stable[s : s + 1], unstable[u : u + 1], np.array([0.5, 0.5]))[0]
        best = np.isclose(proba, proba.max(), rtol=0, atol=1e-12)
        total += mass[s, u][best].sum() / best.sum()
    return total


def expected(case):
    a, r, n = case["stable"], case["agreement"], case["rows"]
    joint = joint_of(a, r, case["leak"])
    pairs = joint.pair_mass
    counts = np.arange(n + 1)
    share = counts / n
    law = binom.pmf(counts, n, pairs[0, 0] + pairs[1, 1])
    naive = (1 - a) + (2 * a - 1) * share
    corrected = [
        recover(joint.stable_posterior, np.array([[g, 1 - g], [1 - g, g]]) / 2).unstable[1, 1] for g in share
    ]
    likely = law > 1e-15
    return {
        "pooled": accuracy(joint, TRAINING),
        "stable": a,
        **{
            name: sum(p * accuracy(joint, q) for p, q, seen in zip(law, rule, likely, strict=True) if seen)
            for name, rule in (("naive", naive), ("corrected", corrected))
        },
        "oracle": joint.table.max(axis=2).sum(),
    }


def test_every_number_is_that_of_the_theory(browser):
    cases = [case for case in CASES if case["rows"] == 10 or case["leak"] == 0.4]
    shown = browser.ask(PAGE, f"{json.dumps(cases)}.map(accuracies)")
    for case, told in zip(cases, shown, strict=True):
        for name, value in expected(case).items():
            assert told[name] == pytest.approx(value, abs=1e-9), (case, name)


def test_moving_a_slider_changes_what_is_shown(browser):
    moved = """(() => {
      const read = () => document.querySelector("#table").innerText;
      const before = read(), slider = document.getElementById("agreement");
      slider.value = 0.5; slider.dispatchEvent(new Event("input"));
      return [before, read()];
    })()"""
    before, after = browser.ask(PAGE, moved)
    assert "90.0 %" in before  # oracle at 0.1
    assert "90.0 %" not in after


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_asks_for_nothing_and_fits(browser, width):
    look = browser.look(PAGE, width)
    assert look.requests == look.complaints == []
    assert look.scroll_width <= width
