"""Where a cell is missing: a feature of its own, unstable, and told."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfboost import StableFeatureBoosting
from sfboost.frames import Encoder

N = 400


def hospital(seed, gap_means_sick):
    """The heart rate is random, but whether it was measured says something; the age is stable."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    gap = rng.random(N) < np.where(y == (1 if gap_means_sick else 0), 0.8, 0.2)
    rate = np.where(gap, np.nan, rng.normal(size=N))
    return pd.DataFrame({"age": y + rng.normal(size=N), "rate": rate, "ward": rng.choice(["a", "b"], N)}), y


@pytest.fixture(scope="module")
def model():
    parts = [hospital(seed, True) for seed in range(3)]
    X, y = pd.concat([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    with pytest.warns(UserWarning, match="Missing in training rows"):
        return StableFeatureBoosting(["age"]).fit(X, y, sample_domain=np.repeat(["a", "b", "c"], N))


@pytest.mark.filterwarnings("ignore:Missing in new rows")
def test_a_gap_that_says_the_opposite_here_is_learned_as_such(model):
    X, y = hospital(9, False)
    adapted = model.adapt(X)
    assert model.unstable_columns_.names[-1] == "rate is missing"
    stable = model.predict_stable_proba(X)
    assert adapted.score(X, y) > np.mean(stable.argmax(axis=1) == y) + 0.05
    np.testing.assert_array_equal(stable, model.predict_stable_proba(X.assign(rate=0.0)))


@pytest.mark.filterwarnings("ignore:Missing in new rows")
def test_a_saved_model_reads_gaps_as_the_one_that_was_saved(model, tmp_path):
    import sfboost

    X, _ = hospital(9, False)
    adapted = model.adapt(X)
    adapted.save(tmp_path / "a.sfb")
    np.testing.assert_array_equal(sfboost.load(tmp_path / "a.sfb").predict_proba(X), adapted.predict_proba(X))


def test_few_gaps_are_no_feature_and_nor_is_a_column_that_is_nearly_empty():
    few = pa.table({"x": [None] * 9 + [1.0] * 91})
    many = pa.table({"x": [None] * 95 + [1.0] * 5})
    some = pa.table({"x": [None] * 10 + [1.0] * 90})
    made = [Encoder.fit(table, ["x"], gaps=["x"]).gaps for table in (few, many, some)]
    assert made == [(), (), ("x",)]


def test_the_indicator_is_one_where_the_cell_is_missing_and_nowhere_else():
    table = pa.table({"x": [1.0, None, float("nan"), float("inf")] * 10, "c": ["a", None, "b", "a"] * 10})
    encoder = Encoder.fit(table, ["x", "c"], gaps=["x", "c"])
    assert encoder.names == ("x", "c=b", "x is missing", "c is missing")
    assert encoder.encode(table)[:4, 2:].tolist() == [[0, 0], [1, 1], [1, 0], [1, 0]]


def test_encoded_rows_and_rows_with_an_indicator_of_their_own_stay_as_they_are():
    table = pa.table({"x": [1.0, None] * 20, "x is missing": [0.5, 0.25] * 20})
    own = Encoder.fit(table, ["x", "x is missing"], gaps=["x"])
    assert own.gaps == ()
    encoder = Encoder.fit(table.select(["x"]), ["x"], gaps=["x"])
    encoded = pd.DataFrame(encoder.encode(table.select(["x"])), columns=list(encoder.names))
    np.testing.assert_array_equal(encoder.encode(encoded), encoded)


def test_shares_of_missing_cells_are_told_by_column():
    table = pa.table({"x": [1.0, None, None, None], "y": [1.0, 2.0, 3.0, 4.0]})
    assert Encoder.fit(table, ["x", "y"]).missing_shares(table) == {"x": 0.75}
