"""Whose meaning changed: one feature that stands out, or many of which none does."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sfboost.answers.mending import Habits
from sfboost.answers.suspecting import change_of_rows
from sfboost.change import DomainData, Reference, change_in
from sfboost.change.domain_data import average_unstable

N_STABLE, N_UNSTABLE = 3, 60


class Words:
    """Many features that each say little of the class, and go with the stable ones within it."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.says = 0.25 * self.rng.choice([-1.0, 1.0], N_UNSTABLE)
        self.says[0] = 1.2  # but one
        self.follows = self.rng.normal(size=(N_STABLE, N_UNSTABLE)) / np.sqrt(N_STABLE)

    def rows(self, n, left=1.0):
        """Class means times what is left of them."""
        y = self.rng.integers(0, 2, n)
        S = 0.8 * (2.0 * y - 1.0)[:, None] + self.rng.normal(size=(n, N_STABLE))
        within = S - 0.8 * (2.0 * y - 1.0)[:, None]
        U = np.outer(2.0 * y - 1.0, left * self.says) + 0.7 * within @ self.follows
        return S, U + self.rng.normal(size=U.shape), y


@pytest.fixture(scope="module")
def trained():
    """Words, what own domains teach, and how to look at rows."""
    words = Words(0)
    own = [words.rows(1500) for _ in range(4)]
    S, U, y = (np.concatenate([part[k] for part in own]) for k in range(3))
    stable = LogisticRegression().fit(S, y)
    pooled = LogisticRegression(max_iter=1000).fit(np.hstack([S, U]), y)

    def seen(S, U):
        def ask(U, positions=None):
            return pooled.predict_log_proba(np.hstack([S if positions is None else S[positions], U]))

        n = len(S)
        return DomainData(stable.predict_log_proba(S), U, ask(U), S, np.full(n, 1.0 / n), ask=ask)

    rows = [seen(S, U) for S, U, _ in own]
    neutral = average_unstable(rows)
    views = [part.beside(neutral) for part in rows]
    reference = Reference.learn(views, [y for *_, y in own], range(4))
    return words, reference, Habits.learn(views), lambda S, U: seen(S, U).beside(neutral)


def test_many_faint_features_that_turned_are_suspected_together(trained):
    words, reference, habits, seen = trained
    S, U, _ = words.rows(2000, left=-1.0)
    rows = seen(S, U)
    alone = change_in(reference, rows)
    assert alone.verdict == "changed"
    assert len(alone.suspects) < N_UNSTABLE
    assert len(change_of_rows(reference, habits, rows).suspects) == N_UNSTABLE


def test_one_feature_that_turned_is_suspected_alone(trained):
    words, reference, habits, seen = trained
    S, U, _ = words.rows(2000)
    U[:, 0] = 2.0 * U[:, 0].mean() - U[:, 0]
    change = change_of_rows(reference, habits, seen(S, U))
    assert change.changed == ("x0",)


def test_rows_as_ever_are_tested_as_ever(trained):
    words, reference, habits, seen = trained
    rows = seen(*words.rows(2000)[:2])
    assert change_of_rows(reference, habits, rows) == change_in(reference, rows)
