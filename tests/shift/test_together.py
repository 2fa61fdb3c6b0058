"""What is seen of all features together where each one says too little."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sfboost.shift import DomainData, Reference, change_in

N_WORDS = 60


def words(rng, n=900):
    """Many features that each say little, some rare, as counts of words."""
    y = rng.integers(0, 2, n)
    S = (2 * y - 1)[:, None] * 0.7 + rng.normal(size=(n, 2))
    lean = np.linspace(-0.5, 0.5, N_WORDS)
    U = rng.poisson(0.3 * np.exp(np.outer(2 * y - 1, lean)))
    return S, U.astype(float), y


@pytest.fixture(scope="module")
def taught():
    """Three own domains, each viewed by predictors of the others, and a view of new rows."""
    rng = np.random.default_rng(0)
    own = [words(rng) for _ in range(3)]

    def viewer(domains):
        S, U, y = (np.concatenate([domain[k] for domain in domains]) for k in range(3))
        stable, pooled = LogisticRegression().fit(S, y), LogisticRegression().fit(np.hstack([S, U]), y)
        return lambda S, U: DomainData.of(
            stable.predict_proba(S), U, pooled.predict_proba(np.hstack([S, U])), S
        )

    views = [viewer(own[:i] + own[i + 1 :])(*own[i][:2]) for i in range(3)]
    return Reference.learn(views, [y for _, _, y in own], list("abc")), viewer(own), words(rng)


def test_untouched_words_are_no_change(taught):
    reference, view, (S, U, _) = taught
    assert change_in(reference, view(S, U)).p_value > 0.2


def test_another_unit_of_all_words_is_seen_though_each_is_judged_at_its_share(taught):
    reference, view, (S, U, _) = taught
    found = change_in(reference, view(S, 4.0 * U))
    assert found.verdict == "changed"


def test_another_zero_of_one_word_is_seen_by_the_class_shares_that_pooled_says(taught):
    """Every row has it ten times more: pooled says one class of nearly all of them."""
    reference, view, (S, U, _) = taught
    moved = U + 10.0 * (np.arange(N_WORDS) == N_WORDS - 1)
    assert np.exp(view(S, moved).log_pooled).mean(axis=0).max() > 0.8
    assert change_in(reference, view(S, moved)).verdict == "changed"
