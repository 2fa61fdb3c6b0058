"""Many domains at once are answered as each of them alone, and better where they learn from each other."""

import numpy as np
import pytest

import sfboost


def rows(rng, n):
    """U follows X_S within a class; two columns that say much and little."""
    y = rng.integers(0, 2, n)
    noise = rng.normal(size=(n, 2))
    S = (2 * y - 1)[:, None] * 0.7 + noise
    U = np.outer(2 * y - 1, (0.8, 0.3)) + 0.5 * noise[:, :1] + rng.normal(size=(n, 2))
    return np.hstack([S, U]), y


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(3)
    parts = [rows(rng, 400) for _ in range(4)]
    X, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return sfboost.StableFeatureBoosting([0, 1]).fit(X, y, sample_domain=np.repeat(list("abcd"), 400))


@pytest.mark.filterwarnings("ignore::sfboost.AdaptationWarning")
@pytest.mark.parametrize("offset", [0.0, 2.0, 3.0])
def test_one_domain_among_many_has_the_weights_that_it_has_alone(model, offset):
    """Where the zero of a column moves, what is at stake on these very rows counts as well."""
    X, _ = rows(np.random.default_rng(4), 400)
    X[:, 2] += offset
    alone, many = model.adapt(X), model.adapt(X, sample_domain=np.full(len(X), "new"))
    assert (alone.decision_ == "pooled") == (offset == 0.0)
    assert many.weights_["new"] == pytest.approx(alone.weights_)


SAYS = np.array([0.8, 0.8, 0.6, 0.4, -0.3, 0.2, 0.0])


def drawn(rng, sizes, mirrored, at, shares):
    """Two stable columns and five that are mirrored in some domains."""
    domain = np.repeat(np.arange(len(sizes)), sizes)
    y = rng.choice(len(shares), len(domain), p=shares)
    sign = np.where(np.asarray(mirrored)[domain, None] & (np.arange(7) > 1), -1.0, 1.0)
    return at[y] * SAYS * sign + rng.normal(size=(len(y), 7)), y, domain


@pytest.mark.filterwarnings("ignore::sfboost.AdaptationWarning")
@pytest.mark.parametrize(
    ("n_classes", "rare"),
    [
        pytest.param(2, None, id="two classes"),
        pytest.param(2, 0.05, id="five percent", marks=pytest.mark.long),
        pytest.param(5, None, id="five classes", marks=pytest.mark.long),
    ],
)
def test_many_at_once_are_better_than_each_alone_and_than_all_as_one_domain(n_classes, rare):
    """A tenth of them is mirrored. In log loss, over all domains."""
    rng = np.random.default_rng(0)
    at = np.outer([-1.0, 1.0], np.ones(7)) if n_classes == 2 else 1.5 * rng.normal(size=(n_classes, 7))
    shares = np.full(n_classes, 1.0 / n_classes) if rare is None else np.array([1.0 - rare, rare])
    X, y, domain = drawn(rng, [400] * 6, [False] * 6, at, shares)
    model = sfboost.StableFeatureBoosting([0, 1]).fit(X, y, sample_domain=domain)
    mirrored = np.arange(200) % 10 == 3
    X, y, domain = drawn(rng, rng.integers(30, 301, 200), mirrored, at, shares)
    many = model.adapt(X, sample_domain=domain)
    some = np.isin(domain, np.arange(0, 200, 4)) | (mirrored[domain] & (domain % 4 == 1))
    alone = np.empty((len(X), n_classes))
    for name in np.unique(domain[some]):
        mine = domain == name
        alone[mine] = model.adapt(X[mine]).predict_log_proba(X[mine])
    # Mirrored domains count as often as they are.
    weight = np.where(
        mirrored[domain], 0.1 / mirrored[domain[some]].mean(), 0.9 / (~mirrored[domain[some]]).mean()
    )

    def loss(log_proba):
        return np.average(-log_proba[np.arange(len(y)), y][some], weights=weight[some])

    ours = loss(many.predict_log_proba(X, domain))
    assert ours < loss(alone)
    assert ours < loss(model.adapt(X).predict_log_proba(X)) - 0.005
    assert ours < loss(model.adapt(X, answer="paper").predict_log_proba(X)) - 0.005
    assert ours < loss(model.predict_log_proba(X)) - 0.02
    found = np.array([many.changes_[number].verdict == "changed" for number in range(200)])
    assert (found & ~mirrored).sum() <= max(0.1 * found.sum(), 1)
    likely = np.array([row.chance for row in sorted(many.overview(), key=lambda row: row.name)])
    assert (likely[mirrored] > 0.5).mean() >= found[mirrored].mean() >= 0.4
    assert likely.mean() == pytest.approx(0.1, abs=0.04)
    unsure = np.flatnonzero(~found & (likely > 0.1) & (likely < 0.9)).tolist()
    assert all("given all new domains, one is" in many.reasons_[number] for number in unsure)
