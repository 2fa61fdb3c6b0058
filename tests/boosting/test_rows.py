"""Training rows: what `fit` refuses, reads and leaves as it was."""

import numpy as np
import pytest
from joints import anticausal_hospitals as hospitals
from joints import draw_anticausal

from sfboost import Settings, StableFeatureBoosting
from sfboost.boosting.rows import enough_rows


@pytest.fixture
def new():
    return draw_anticausal(4000, 0.1, seed=77)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"y": np.zeros(100)}, "one class only"),
        ({"y": np.full(100, np.nan)}, "NaN"),
        ({"y": np.array([None, "a"] * 50, dtype=object)}, "missing labels"),
        ({"y": np.zeros(3)}, "inconsistent numbers of samples"),
        ({"y": None}, "fit needs labels"),
        ({"sample_domain": ["a"]}, "one domain per row"),
        ({"sample_domain": [None] * 100}, "missing entries"),
        ({"sample_domain": [float("nan")] * 100}, "missing entries"),
        ({"X": np.full((100, 2), np.nan)}, "NaN"),
        ({"X": np.full((100, 2), np.inf)}, "infinity"),
        ({"X": np.zeros((0, 2))}, "0 sample"),
    ],
)
def test_bad_training_rows(change, sentence):
    X, y, domain = hospitals(50)
    arguments = {"X": X, "y": y, "sample_domain": domain} | change
    with pytest.raises(ValueError, match=sentence):
        StableFeatureBoosting([0]).fit(**arguments)


def test_inputs_are_never_written_to(new):
    X, y, domain = hospitals()
    arrays = (X, y, new[0])
    for array in arrays:
        array.setflags(write=False)
    before = [array.tobytes() for array in arrays]
    StableFeatureBoosting([0], [1]).fit(X, y, sample_domain=domain).adapt(new[0]).predict(new[0])
    assert [array.tobytes() for array in arrays] == before


def test_sparse_rows(new):
    from scipy import sparse

    X, y, domain = hospitals()
    model = StableFeatureBoosting([0], [1]).fit(sparse.csr_array(X), y, sample_domain=domain)
    thin = sparse.csr_array(new[0])
    why = model.adapt(thin, settings=Settings("paper")).explain(thin[[3]])
    np.testing.assert_array_equal(why.feature_values, new[0][3, 1:])
    assert model.adapt(thin).score(thin, new[1]) == pytest.approx(0.9, abs=0.02)
    bad = sparse.csr_array(X)
    bad.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        StableFeatureBoosting([0], [1]).fit(bad, y, sample_domain=domain)


def test_a_logistic_regression_that_only_judges_others_needs_not_all_rows():
    rng = np.random.default_rng(0)
    y = (rng.random(200_000) < 0.3).astype(int)
    rows = np.flatnonzero(rng.random(len(y)) < 0.9)
    some = enough_rows(rows, y, 10)
    assert len(some) == 20_000
    assert np.isin(some, rows).all()
    assert y[some].mean() == pytest.approx(y[rows].mean(), abs=0.01)
    rare = (np.arange(len(y)) % 1000 == 0).astype(int)
    assert len(enough_rows(rows, rare, 10)) == len(rows)  # 180 of the rarest class are not too many
    np.testing.assert_array_equal(enough_rows(rows[:19_000], y, 10), rows[:19_000])
