"""The search for a set: what it saves changes nothing."""

from itertools import combinations

import numpy as np
import pytest

from sfboost.selection import search
from sfboost.selection.basis import normal_scores
from sfboost.selection.invariance import TrainingDomains, measure_invariance
from sfboost.selection.search import Rules, add_company, confirm, screen

RULES = Rules("posterior", 0.1, 0.05)


def as_domains(X, y, domain):
    return TrainingDomains.of(np.column_stack([normal_scores(column) for column in X.T]), y, domain)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["posterior", "likelihood"])
@pytest.mark.parametrize("n_domains", [2, 3, 5])
def test_no_larger_set_is_shown_to_be_stable_where_the_smaller_one_says_that_none_can_be(
    families, kind, n_domains
):
    rules = Rules(kind, 0.1, 0.05)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        data = as_domains(*families.gaussian_effects(rng, 400, n_domains=n_domains))
        for pair in combinations(range(5), 2):
            least = rules.measure(data, pair).least_p_drift
            for more in set(range(7)) - set(pair):
                assert rules.measure(data, tuple(sorted((*pair, more)))).p_drift >= least


def tried_sets(monkeypatch):
    tried = []

    def measure(data, chosen, *how):
        tried.append(chosen)
        return measure_invariance(data, chosen, *how)

    monkeypatch.setattr(search, "measure_invariance", measure)
    return tried


def test_sets_that_the_rows_cannot_show_to_be_stable_are_not_tried(families, monkeypatch):
    tried = tried_sets(monkeypatch)
    data = as_domains(*families.gaussian_effects(np.random.default_rng(0), 300))
    assert add_company(data, (0, 1, 2), tuple(range(7)), RULES) == ((0, 1, 2), {})
    assert tried == [(0, 1, 2)]
    many = as_domains(*families.gaussian_effects(np.random.default_rng(0), 20_000))
    add_company(many, (0, 1), (0, 1, 2, 3), RULES)
    assert (0, 1, 2) in tried


def thinned(seed):
    """Six effects; the noises of three pairs are correlated in a way that depends on the domain."""
    rng = np.random.default_rng(seed)
    n = 2000
    y, domain = rng.integers(0, 2, 2 * n), np.repeat([0, 1], n)
    noise = rng.standard_normal((6, 2 * n))
    for first, second in ((0, 1), (2, 3)):
        noise[second] = np.where(domain, 0.9, -0.9) * noise[first] + np.sqrt(1 - 0.81) * noise[second]
    return as_domains((y * np.array([[1.5], [0.8], [1.2], [0.6], [1.0], [0.9]]) + noise).T, y, domain)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_out_is_what_trying_every_column_would_leave_out(seed, monkeypatch):
    data = thinned(seed)
    screening, start = screen(data, RULES), tuple(range(6))
    chosen, expected = start, []
    while search._drifts(RULES.measure(data, chosen), RULES):
        without = {j: tuple(k for k in chosen if k != j) for j in chosen}
        fine = [j for j in chosen if not search._drifts(RULES.measure(data, without[j]), RULES)]
        out = max(fine or chosen, key=lambda j: float(screening.p_uninformative[j]))
        expected.append(out)
        chosen = without[out]
    tried, fresh = tried_sets(monkeypatch), thinned(seed)
    kept, dropped = confirm(fresh, start, screening, RULES)
    assert (kept, list(dropped)) == (chosen, expected)
    assert len(expected) >= 2
    assert len(tried) == len(set(tried))
