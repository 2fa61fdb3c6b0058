"""How many rows: against each other, and whether they are enough."""

import numpy as np
import pytest

from sfboost.diagnostics import rows_needed
from sfboost_lab.theory import FiniteJoint


def test_half_the_margin_takes_four_times_the_rows_and_weak_f_s_about_one_over_s():
    f = [0.25, 0.75]
    assert rows_needed(f, 0.02, unstable=0.5).rows == pytest.approx(
        4 * rows_needed(f, 0.04, unstable=0.5).rows, rel=1e-3
    )
    strong, weak = [0.25, 0.75], [0.4, 0.6]  # s = .25 and .04
    ratio = (
        rows_needed(weak, 0.02, unstable=0.5, mass=0.01).rows
        / rows_needed(strong, 0.02, unstable=0.5, mass=0.01).rows
    )
    assert ratio == pytest.approx(0.25 / 0.04, rel=0.02)


def test_the_rows_give_the_wanted_margin_and_a_quarter_of_them_do_not():
    law = FiniteJoint.from_conditionals(
        [0.6, 0.4], [[0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.2, 0.6]], [[0.2, 0.8], [0.6, 0.4]]
    )
    f, truth, margin = law.stable_posterior, law.unstable_posterior[0, 1], 0.06
    known = {"unstable": law.unstable_posterior[0], "sample_weight": law.stable_mass}
    rows = rows_needed(f, margin, mass=law.unstable_mass[0], **known).rows
    rng = np.random.default_rng(5)

    def coverage(n):
        drawn = rng.multinomial(n, law.pair_mass.ravel(), size=600).reshape(600, *law.pair_mass.shape)
        prior = drawn.sum(axis=2) @ f / n
        ratio = (f[:, 1] / prior[:, 1:]) / (f[:, 0] / prior[:, :1])
        share, q = drawn[:, :, 0] / drawn[:, :, 0].sum(axis=1, keepdims=True), np.full(600, 0.5)
        for _ in range(500):  # EM: not the way the library maximises the likelihood
            odds = (q / (1 - q))[:, None] * ratio
            q = (share * odds / (1 + odds)).sum(axis=1)
        return np.mean(np.abs(q - truth) <= margin)

    assert 0.92 <= coverage(rows) <= 0.975
    assert coverage(rows // 4) < 0.75


def test_without_a_supposed_value_the_least_favourable_one_is_taken():
    rng = np.random.default_rng(4)
    f, weight = rng.dirichlet(np.ones(2), 7), rng.dirichlet(np.ones(7))
    worst = rows_needed(f, 0.05, sample_weight=weight).rows
    assert worst >= max(
        rows_needed(f, 0.05, unstable=q, sample_weight=weight).rows for q in (0.1, 0.3, 0.5, 0.7, 0.9)
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rows_needed([0.5, 0.5]), "no number of unlabelled rows is enough"),
        (lambda: rows_needed([0.2, 0.8], 0.0), "between 0 and 1"),
        (lambda: rows_needed([0.2, 0.8], mass=0.0), "share of rows"),
    ],
)
def test_impossible_questions_are_answered_by_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
