"""The leak of labelled domains: weights are ratios that move the estimate as repeated rows do."""

import numpy as np
import pytest

from sfboost.diagnostics import DomainLeak, domain_leak, training_leak
from sfboost_lab.testing import Dials, simulate


@pytest.fixture(scope="module")
def rows():
    """One leaking domain, and weights of 0 to 3 that are large where X_U and f_S point the same way."""
    problem = simulate(Dials(new_violation=0.6, n_rows=20_000, n_training_rows=500), seed=0)
    new = problem.new
    same = (new.X_unstable[:, 0] > new.X_unstable[:, 0].mean()) == (new.posterior[:, 1] > 0.5)
    weight = np.where(same, 3, 1)
    weight[::7] = 0
    return problem, new, weight


def leak_of(new, rows=slice(None), weight=None):
    return domain_leak(new.posterior[rows], new.X_unstable[rows], new.y[rows], "a", weight)


def test_integer_weights_are_repeated_rows_but_for_sampling_error(rows):
    """Repeated rows are no new observations, so what noise takes off differs: by less than a hundredth."""
    _, new, weight = rows
    weighted, plain = leak_of(new, weight=weight.astype(float)), leak_of(new)
    repeated = leak_of(new, np.repeat(np.arange(len(new.y)), weight))
    assert weighted.informativeness == pytest.approx(repeated.informativeness, abs=1e-12)
    assert weighted.size == pytest.approx(repeated.size, rel=0.01)
    assert weighted.lower < repeated.lower  # fewer observations say less
    assert weighted.size != pytest.approx(plain.size, rel=0.05)


def leaks_of(n_domains, n_rows, violation, seed):
    dials = Dials(n_training_rows=n_rows, n_domains=n_domains, training_violation=violation)
    parts = simulate(dials, seed).training
    return tuple(domain_leak(part.posterior, part.X_unstable, part.y, i) for i, part in enumerate(parts))


@pytest.mark.long
@pytest.mark.parametrize("n_domains", [1, 2, 5])
@pytest.mark.parametrize("n_rows", [300, 3000])
def test_a_further_domain_seldom_leaks_more_than_delta(n_domains, n_rows):
    """δ is the upper end of a prediction interval of 90 %: 40 of 40 problems leave room for 4, not for 12."""
    more = 0
    for seed in range(40):
        *known, _ = leaks_of(n_domains + 1, n_rows, 0.3, seed)
        truth = leaks_of(1, 30_000, 0.3, seed)[0].size  # the same problem, measured well
        more += training_leak(tuple(known)) < truth
    assert more <= 8


def test_fewer_rows_make_delta_larger_and_the_lower_limit_smaller():
    few, many = leaks_of(2, 300, 0.3, 0), leaks_of(2, 20_000, 0.3, 0)
    assert training_leak(few) > training_leak(many)
    assert max(leak.lower for leak in few) < max(leak.lower for leak in many)


def test_domains_that_differ_make_delta_larger_than_domains_that_agree():
    def delta(*squares):
        return training_leak(tuple(DomainLeak("a", s**0.5, 0.0, 0.3, 2000, s, 2e-4) for s in squares))

    assert delta(0.001, 0.007, 0.001, 0.007) > delta(0.004, 0.004, 0.004, 0.004) > 0.004**0.5
    # Two domains alone would say anything: the prior guess keeps δ of use, and one domain has a δ too.
    assert 0.004**0.5 < delta(0.004) < 0.1
    assert 0.004**0.5 < delta(0.003, 0.005) < 0.1


def test_what_was_not_measured_is_not_zero():
    assert training_leak(()) is None
