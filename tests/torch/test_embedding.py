"""A frozen network of which nothing is stable: components take the place of the learned split."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from scipy.ndimage import rotate  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from torch import nn  # noqa: E402

import sfboost.torch  # noqa: E402
from sfboost import StableFeatureBoosting  # noqa: E402
from sfboost.torch import Plan, SFBClassifier  # noqa: E402
from sfboost.torch.embedding import Preference  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::sfboost.AdaptationWarning", "ignore:In . starts:UserWarning"),
    pytest.mark.long,  # all of them share a model that takes long
]
PLAN = Plan(freeze_trunk=True, steps=40, unstable_steps=20, learning_rate=0.01, precision="float32")


@pytest.fixture(scope="module")
def turned():
    """Real digits of ten classes, turned by another angle in each domain."""
    data, part = load_digits(), np.arange(1797) % 4
    images = [
        rotate(data.images[part == k] / 16, angle, axes=(1, 2), reshape=False, order=1)
        for k, angle in enumerate((-10, 0, 10, 20))
    ]
    X = np.concatenate(images).reshape(-1, 64).astype(np.float32)
    y = np.concatenate([data.target[part == k] for k in range(4)])
    domain = np.repeat(["a", "b", "c", "new"], [len(part) for part in images])
    own = domain != "new"
    return (X[own], y[own], domain[own]), (X[~own], y[~own])


@pytest.fixture(scope="module")
def model(turned):
    X, y, domain = turned[0]
    return SFBClassifier(nn.Identity(), plan=PLAN).fit(X, y, sample_domain=domain)


def test_own_domains_prefer_components_where_no_part_of_ten_turned_digits_is_stable(model, turned):
    (X, y, domain), (X_new, y_new) = turned
    assert not model.verification_.stable
    assert model.preference_.domains == ("a", "b", "c")
    assert model.preference_.components_win
    along = StableFeatureBoosting(unstable_features="components").fit(
        X.astype(float), y, sample_domain=domain
    )
    np.testing.assert_allclose(model.predict_proba(X_new), along.predict_proba(X_new), atol=1e-6)
    mine, theirs = model.adapt(X_new), along.adapt(X_new.astype(float))
    assert (mine.decision_, str(mine.reason_)) == (theirs.decision_, str(theirs.reason_))
    np.testing.assert_allclose(
        mine.predict_proba(X_new), theirs.predict_proba(X_new.astype(float)), atol=1e-6
    )
    alone = SFBClassifier(nn.Identity(), plan=PLAN.changed(components=False)).fit(X, y, sample_domain=domain)
    assert alone.embedded_ is None
    assert mine.score(X_new, y_new) > alone.adapt(X_new).score(X_new, y_new) + 0.02


def test_it_is_saved_and_explains_a_row(model, turned, tmp_path):
    X_new = turned[1][0]
    adapted = model.adapt(X_new)
    assert "component 1" in str(adapted.explain(X_new[0]))
    adapted.save(tmp_path / "adapted.sfb")
    again = sfboost.torch.load(tmp_path / "adapted.sfb", network=nn.Identity())
    np.testing.assert_array_equal(again.predict_proba(X_new), adapted.predict_proba(X_new))
    assert again.model.preference_.reason == model.preference_.reason


def test_with_two_domains_none_can_be_left_out_and_the_learned_split_stays(turned):
    X, y, domain = (part[:898] for part in turned[0])
    assert len(np.unique(domain)) == 2
    model = SFBClassifier(nn.Identity(), plan=PLAN.changed(steps=5, unstable_steps=5)).fit(
        X, y, sample_domain=domain
    )
    assert model.embedded_ is model.preference_ is None


@pytest.mark.parametrize(("gains", "win"), [([0.05, 0.04, 0.06], True), ([0.05, -0.05, 0.06], False)])
def test_components_win_by_two_standard_errors(gains, win):
    preference = Preference(("a", "b", "c"), np.full(3, 0.8), 0.8 + np.array(gains))
    assert preference.components_win == win


@pytest.mark.parametrize(("gains", "win"), [([0.05, 0.04, 0.06], True), ([0.01, 0.04, 0.06], False)])
def test_in_place_of_a_stable_part_components_win_only_where_every_own_domain_says_so(gains, win):
    preference = Preference(("a", "b", "c"), np.full(3, 0.8), 0.8 + np.array(gains), shown_stable=True)
    assert preference.components_win == win
    assert Preference(("a", "b", "c"), preference.learned, preference.components).components_win


def test_a_stable_part_of_a_frozen_network_that_own_domains_do_not_prefer_to_leave_is_kept():
    """Three domains of a score that holds and of a sign that means more or less."""
    rng = np.random.default_rng(0)
    y, domain = rng.integers(0, 2, 3000), np.repeat(["a", "b", "c"], 1000)
    agreement = np.repeat([0.95, 0.85, 0.75], 1000)
    sign = np.where(rng.random(3000) < agreement, y, 1 - y)
    held = np.where(rng.random(3000) < 0.75, y, 1 - y)
    X = np.c_[2.0 * held - 1, 2.0 * sign - 1].astype(np.float32)
    model = SFBClassifier(nn.Identity(), plan=PLAN.changed(batch_size=256)).fit(X, y, sample_domain=domain)
    assert model.verification_.stable
    assert model.preference_.shown_stable
    assert model.embedded_ is None
    turned = X * np.array([1.0, -1.0], dtype=np.float32)
    adapted = model.adapt(turned)
    assert adapted.decision_ == "adapted"
    along = StableFeatureBoosting(unstable_features="components")
    along.fit(X.astype(float), y, sample_domain=domain)
    assert along.adapt(turned.astype(float)).score(turned.astype(float), y) < 0.5
    assert adapted.score(turned, y) > 0.8
