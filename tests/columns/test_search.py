"""The search for a set: what it saves changes nothing."""

from itertools import combinations

import numpy as np
import pytest

from sfboost.columns import invariance
from sfboost.columns.invariance import TrainingDomains
from sfboost.columns.selector import add_company, confirm, drifts, screen


@pytest.mark.long
@pytest.mark.parametrize("kind", ["posterior", "likelihood"])
@pytest.mark.parametrize("n_domains", [2, 3, 5])
def test_no_larger_set_is_shown_to_be_stable_where_the_smaller_one_says_that_none_can_be(
    families, kind, n_domains
):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        data = TrainingDomains.of(*families.gaussian_effects(rng, 400, n_domains=n_domains), kind=kind)
        for pair in combinations(range(5), 2):
            least = data.measure(pair).least_p_drift
            for more in set(range(7)) - set(pair):
                assert data.measure(tuple(sorted((*pair, more)))).p_drift >= least


def test_sets_that_the_rows_cannot_show_to_be_stable_are_not_tried(families):
    data = TrainingDomains.of(*families.gaussian_effects(np.random.default_rng(0), 300))
    assert add_company(data, (0, 1, 2), tuple(range(7))) == ((0, 1, 2), {})
    assert list(data.measured) == [(0, 1, 2)]
    many = TrainingDomains.of(*families.gaussian_effects(np.random.default_rng(0), 20_000))
    add_company(many, (0, 1), (0, 1, 2, 3))
    assert (0, 1, 2) in many.measured


def thinned(seed):
    """Six effects; the noises of three pairs are correlated in a way that depends on the domain."""
    rng = np.random.default_rng(seed)
    n = 2000
    y, domain = rng.integers(0, 2, 2 * n), np.repeat([0, 1], n)
    noise = rng.standard_normal((6, 2 * n))
    for first, second in ((0, 1), (2, 3)):
        noise[second] = np.where(domain, 0.9, -0.9) * noise[first] + np.sqrt(1 - 0.81) * noise[second]
    return TrainingDomains.of((y * np.array([[1.5], [0.8], [1.2], [0.6], [1.0], [0.9]]) + noise).T, y, domain)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_out_is_what_trying_every_column_would_leave_out(seed, monkeypatch):
    data = thinned(seed)
    screened, start = screen(data, tuple("abcdef")), tuple(range(6))
    chosen, expected = start, []
    while drifts(data, chosen):
        without = {j: tuple(k for k in chosen if k != j) for j in chosen}
        fine = [j for j in chosen if not drifts(data, without[j])]
        out = max(fine or chosen, key=lambda j: screened[j].p_uninformative)
        expected.append(out)
        chosen = without[out]
    tried, posterior = [], invariance._posterior
    monkeypatch.setattr(invariance, "_posterior", lambda d, c: tried.append(c) or posterior(d, c))
    kept, dropped = confirm(thinned(seed), start, screened)
    assert (kept, list(dropped)) == (chosen, expected)
    assert len(expected) >= 2
    assert len(tried) == len(set(tried))
