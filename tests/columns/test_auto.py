"""`stable_features="auto"`: the selector inside StableFeatureBoosting."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sfboost import StableFeatureBoosting
from sfboost.columns import StableFeatureSelector


@pytest.fixture
def coins(families):
    X, y, domain = families.anticausal_coins(np.random.default_rng(0))
    X_new, y_new, _ = families.anticausal_coins(np.random.default_rng(1), 4000, (0.1,))
    return X, y, domain, X_new, y_new


def test_auto_finds_the_stable_coin_and_adapts_as_if_it_had_been_named(coins):
    X, y, domain, X_new, y_new = coins
    auto = StableFeatureBoosting("auto").fit(X, y, sample_domain=domain)
    named = StableFeatureBoosting([0], [1]).fit(X, y, sample_domain=domain)
    assert (auto.stable_columns_, auto.unstable_columns_) == (named.stable_columns_, named.unstable_columns_)
    assert auto.selector_.status_ == "selected"
    assert auto.adapt(X_new).score(X_new, y_new) == named.adapt(X_new).score(X_new, y_new) > 0.88
    assert not hasattr(named, "selector_")


def test_columns_named_unstable_are_not_searched_and_a_selector_may_be_given_that_stays_unfitted(coins):
    X, y, domain, *_ = coins
    mine = StableFeatureSelector(kind="likelihood", tolerance=0.2)
    for stable, unstable in (("auto", [1]), (mine, None)):
        model = StableFeatureBoosting(stable, unstable).fit(X, y, sample_domain=domain)
        assert (model.stable_columns_.positions, model.unstable_columns_.positions) == ((0,), (1,))
    assert model.selector_.tolerance == 0.2
    assert not hasattr(mine, "support_")


@pytest.mark.filterwarnings("ignore:sample_domain was not given")
def test_where_nothing_can_be_told_fit_refuses_with_the_selectors_sentence(coins):
    X, y, domain, *_ = coins
    with pytest.raises(ValueError, match="one domain only"):
        StableFeatureBoosting("auto").fit(X, y)
    few = np.r_[0:20, 1024:1044]
    with pytest.raises(ValueError, match="rows cannot tell"):
        StableFeatureBoosting("auto").fit(X[few], y[few], sample_domain=domain[few])
    with pytest.raises(ValueError, match="none is left"):
        StableFeatureBoosting("auto", [0, 1]).fit(X, y, sample_domain=domain)


def test_text_columns_are_encoded_unless_a_pipeline_wants_them_raw(coins):
    pd = pytest.importorskip("pandas", reason="needs the optional extra sfboost[app]")
    X, y, domain, *_ = coins
    frame = pd.DataFrame(X, columns=["shape", "colour"]).assign(city="Rome")
    with pytest.raises(ValueError, match="'city' is not numeric"):
        StableFeatureBoosting("auto", stable=LogisticRegression()).fit(frame, y, sample_domain=domain)
    words = frame.assign(shape=np.where(X[:, 0] > 0, "square", "round"))
    for table in (frame, words):
        model = StableFeatureBoosting("auto").fit(table, y, sample_domain=domain)
        assert model.stable_columns_.sources == ("shape",)
