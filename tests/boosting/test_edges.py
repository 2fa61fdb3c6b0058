"""Numbers at the edge of what floats hold, and tables of two rows: the right result or a sentence of ours.

Every warning is an error here (see pyproject.toml), so an overflow on the way fails a test too.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sfboost import Settings, StableFeatureBoosting, adapt

pytestmark = pytest.mark.filterwarnings("ignore:sample_domain was not given")

OTHER_UNIT = "express them in another unit"
BEYOND = [1e160, 1e300, 1e307, 1e-160, 1e-300, 5e-324]
WITHIN = [1e90, 1e-90]


def draw(n, sign, seed):
    """A stable column, two unstable ones."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    side = np.where(y > 0, 1.0, -1.0)
    return np.column_stack([side, sign * side, 0.0 * side]) + rng.uniform(-1.8, 1.8, (n, 3)), y


X, Y = draw(600, 1.0, 0)
DOMAIN = np.repeat(["a", "b", "c"], 200)
X_NEW, Y_NEW = draw(300, -1.0, 1)


@pytest.fixture(scope="module")
def model():
    return StableFeatureBoosting([0], learner=None).fit(X, Y, sample_domain=DOMAIN)


@pytest.fixture(scope="module")
def stable(model):
    return model.predict_proba(X_NEW)


@pytest.mark.parametrize("scale", WITHIN)
def test_the_unit_of_a_column_does_not_matter(model, scale):
    plain = model.adapt(X_NEW).predict_proba(X_NEW)
    for unit in ([1, scale, scale], [scale, 1, 1], [1, scale, 1 / scale]):
        there = (
            StableFeatureBoosting([0], learner=None)
            .fit(X * unit, Y, sample_domain=DOMAIN)
            .adapt(X_NEW * unit)
        )
        np.testing.assert_allclose(there.predict_proba(X_NEW * unit), plain, atol=1e-5)


@pytest.mark.parametrize("scale", BEYOND)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("options", [{}, {"settings": Settings(standardize=False)}, {"answer": "safe"}])
def test_arrays_that_cannot_be_squared_are_refused(stable, scale, form, options):
    for unit in (scale, [1.0, scale]):
        with pytest.raises(ValueError, match=OTHER_UNIT):
            adapt(stable, form(X_NEW[:, 1:] * unit), **options)


@pytest.mark.parametrize("scale", BEYOND)
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_the_estimator_names_columns_that_cannot_be_squared(model, scale, form):
    for unit, name in (([scale, 1, 1], "0"), ([1, 1, scale], "2")):
        strange = form(X * unit)
        for use in (
            lambda data: StableFeatureBoosting([0]).fit(data, Y, sample_domain=DOMAIN),
            lambda data: StableFeatureBoosting([0]).diagnose(data, Y, DOMAIN),
            lambda data: model.adapt(np.asarray(data) if form is pd.DataFrame else data),
        ):
            with pytest.raises(ValueError, match=rf"features \['x?{name}'\] hold numbers beyond"):
                use(strange)


def test_large_numbers_of_both_signs_are_finite():
    """Their sum is not a number, and scikit-learn sums up to see whether all are finite."""
    large = np.where(X > 0, 1.7e308, -1.7e308)
    with pytest.raises(ValueError, match=OTHER_UNIT):
        StableFeatureBoosting([0]).fit(large, Y)


def test_a_pipeline_may_take_what_it_can_handle():
    """Where the caller brings the estimators, the checks of ours leave the columns out."""
    unit = [1.0, 1e300, 1e300]
    pipeline = make_pipeline(MaxAbsScaler(), LogisticRegression())
    model = StableFeatureBoosting([0], unstable=pipeline).fit(X * unit, Y, sample_domain=DOMAIN)
    adapted = model.adapt(X_NEW * unit)
    assert adapted.score(X_NEW * unit, Y_NEW) >= model.score(X_NEW * unit, Y_NEW)


def test_a_row_next_to_zero_is_predicted_and_one_next_to_infinity_refused(model):
    adapted = model.adapt(X_NEW)
    tiny, huge = X_NEW[:1] * [1, 1e-300, 0], X_NEW[:1] * [1, 1e300, 1]
    np.testing.assert_allclose(adapted.predict_proba(tiny), adapted.predict_proba(X_NEW[:1] * [1, 0, 0]))
    with pytest.raises(ValueError, match=OTHER_UNIT):
        adapted.predict_proba(huge)


@pytest.mark.parametrize("weight", [1e308, 1e300, 1e-300, 5e-324])
def test_weights_that_cannot_be_squared_are_refused_by_fit(weight):
    with pytest.raises(ValueError, match="divide all weights by a number"):
        StableFeatureBoosting([0]).fit(X, Y, sample_weight=np.full(600, weight))
    with pytest.raises(ValueError, match="divide all weights"):
        StableFeatureBoosting([0]).evaluate(X, Y, DOMAIN, sample_weight=np.full(600, weight))


@pytest.mark.filterwarnings("ignore::sfboost.adaptation.AdaptationWarning")
@pytest.mark.parametrize("n_rows", [2, 3])
def test_two_rows_keep_the_stable_predictor_and_may_be_forced(model, n_rows):
    few = X_NEW[:n_rows]
    kept = model.adapt(few, answer="safe")
    assert kept.decision_ == "kept stable"
    np.testing.assert_allclose(kept.predict_proba(few), model.predict_stable_proba(few))
    forced = model.adapt(few, settings=Settings("paper"))
    assert np.isfinite(forced.predict_proba(few)).all()
    assert str(StableFeatureBoosting([0]).diagnose(X, Y, DOMAIN, few))


@pytest.mark.filterwarnings("ignore::sfboost.adaptation.AdaptationWarning")
@pytest.mark.parametrize("n_rows", [2, 5, 9])
def test_a_handful_of_rows_is_answered_as_own_domains_are(model, n_rows):
    """Their own mean says nothing of the domain: put back to it, features said the opposite of the truth."""
    more, y = draw(2000, 1.0, 3)
    for seed in range(4):
        few, weight = draw(300, 1.0, 10 + seed)[0], np.arange(300) < n_rows
        adapted = model.adapt(few, sample_weight=weight) if seed else model.adapt(few[:n_rows])
        assert adapted.shift_.unstable.verdict == "cannot tell"
        assert set(adapted.weights_) <= {"stable", "pooled"}
        assert adapted.score(more, y) >= model.score(more, y)


def test_one_row_is_refused_also_where_the_others_weigh_nothing(model, stable):
    for weight in (None, [1.0, 0.0]):
        rows = 1 if weight is None else 2
        with pytest.raises(ValueError, match="One row cannot tell"):
            adapt(stable[:rows], X_NEW[:rows, 1:], sample_weight=weight, settings=Settings("paper"))
    with pytest.raises(ValueError, match="One row shows nothing of a new domain"):
        model.diagnose(X, Y, DOMAIN, X_NEW[:1])


def test_two_training_rows_are_too_few_and_that_is_said():
    both = np.flatnonzero(Y == 0)[:1].tolist() + np.flatnonzero(Y == 1)[:1].tolist()
    with pytest.raises(ValueError, match="at least two rows of two classes"):
        StableFeatureBoosting([0]).fit(X[both], Y[both])


@pytest.mark.parametrize("l2", [float("inf"), 1e308, float("nan"), 0.0, -1.0])
def test_a_penalty_that_cannot_be_is_refused(stable, l2):
    with pytest.raises(ValueError, match='pass "auto" or a positive number'):
        adapt(stable, X_NEW[:, 1:], settings=Settings(l2=l2))
