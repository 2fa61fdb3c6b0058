"""Answers to rows that nothing happened to: own domains must clearly ask for them."""

import numpy as np
import pytest

import sfboost
from sfboost.adaptation.settings import Settings
from sfboost.answers.candidates import BoostSettings
from sfboost.answers.choosing import quiet_answer
from sfboost.answers.mending import Habits
from sfboost.answers.play import AS_IS, Case
from sfboost.answers.quiet import QuietAnswers
from sfboost.change import DomainData

NAMES = ["stable", "pooled", "boosted", "averaged", "components"]


def case(domain, **log_loss):
    losses = dict.fromkeys(NAMES, 0.5) | log_loss
    return Case(domain, AS_IS, (1.0,) * 4, 0.5, 100, losses)


@pytest.mark.parametrize("name", NAMES[3:])
def test_own_domains_must_clearly_prefer_them(name):
    clearly = [case(d, **{name: 0.4 + 0.01 * i}) for i, d in enumerate("abc")]
    hardly = [case(d, **{name: loss}) for d, loss in zip("abc", (0.3, 0.55, 0.5), strict=True)]
    assert quiet_answer(clearly, NAMES) == name
    assert quiet_answer(hardly, NAMES) == "pooled"


def domains(rng, sizes, heads):
    """P(Y | X_S) is the same everywhere; what U says differs, and it follows X_S within a class, too."""
    parts = []
    for size, head in zip(sizes, heads, strict=True):
        y = rng.integers(0, 2, size)
        noise = rng.normal(size=size)
        S = (2 * y - 1) * 0.6 + noise
        U = np.outer(2 * y - 1, head) + 0.6 * noise[:, None] + rng.normal(size=(size, 2))
        parts.append((np.column_stack([S, U]), y))
    X, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return X, y, np.repeat(np.arange(len(sizes)), sizes)


@pytest.fixture(scope="module")
def asked_for():
    """One large domain, and seven small ones of another mind that the new one is like."""
    rng = np.random.default_rng(0)
    heads = [(0.3, 0.8)] + [(0.8 + 0.05 * rng.normal(), 0.3 + 0.05 * rng.normal()) for _ in range(7)]
    X, y, domain = domains(rng, [8000, *[400] * 7], heads)
    model = sfboost.StableFeatureBoosting([0]).fit(X, y, sample_domain=domain)
    new, labels, _ = domains(rng, [2000], [(0.8, 0.3)])
    return model.adapt(new), new, labels


def test_where_one_domain_has_most_of_the_rows_each_may_count_once(asked_for):
    adapted, new, labels = asked_for
    assert adapted.weights_ == {"averaged": 1.0}
    assert adapted.decision_ == "pooled"
    assert "on average, which your own domains clearly prefer" in adapted.reason_
    right = {name: (said.argmax(axis=1) == labels).mean() for name, said in adapted.answers_.items()}
    assert adapted.score(new, labels) == right["averaged"] > right["pooled"] + 0.04


def test_they_are_saved_with_the_model(asked_for, tmp_path):
    adapted, new, _ = asked_for
    adapted.save(tmp_path / "adapted.sfb")
    loaded = sfboost.load(tmp_path / "adapted.sfb")
    np.testing.assert_array_equal(loaded.predict_proba(new), adapted.predict_proba(new))


def turned_rows(rng, n=500):
    """Ten columns that say a little, the same everywhere, and ten that say much, in a direction of their own.

    Pooled knows the first.
    """
    y = rng.integers(0, 2, n)
    little = 0.4 * (2 * y - 1)[:, None] + rng.normal(size=(n, 10))
    direction = rng.normal(size=10)
    much = np.outer(2 * y - 1, 3.0 * direction / np.linalg.norm(direction)) + rng.normal(size=(n, 10))
    logit = 2.0 * 0.4 * little.sum(axis=1)
    pooled = np.column_stack([-np.logaddexp(0.0, logit), -np.logaddexp(0.0, -logit)])
    weak = np.log(np.full((n, 2), 0.5))
    return DomainData(weak, much, pooled, little, np.full(n, 1.0 / n)), y


def test_adapting_along_the_new_rows_own_directions_helps_where_own_domains_say_so():
    rng = np.random.default_rng(1)
    own, (new, y) = [turned_rows(rng) for _ in range(4)], turned_rows(rng)
    rows, labels = [part for part, _ in own], [y for _, y in own]
    habits = Habits.learn(rows)
    settings = BoostSettings(Settings().resolved(), np.array([0.5, 0.5]), always=True)
    quiet = QuietAnswers.learn(rows, labels, habits)
    quiet, said = quiet.played(rows, labels, np.arange(4), habits, settings)
    losses = [-one["components"][np.arange(500), y].mean() for one, y in zip(said, labels, strict=True)]
    pooled = [-part.log_pooled[np.arange(500), y].mean() for part, y in own]
    assert (np.array(losses) < pooled).all()
    answer = quiet.answer("components", new, habits, settings)
    right, before = ((said.argmax(axis=1) == y).mean() for said in (answer.log_proba(new), new.log_pooled))
    assert right > before + 0.02
