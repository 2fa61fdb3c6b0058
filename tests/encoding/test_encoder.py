import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfboost.encoding import Encoder


def test_a_missing_number_is_the_median_of_training():
    encoder = Encoder.fit(pa.table({"age": [10.0, 20.0, 60.0, None]}), ["age"])
    new = pa.table({"age": [None, 5.0, float("nan")]})
    assert encoder.encode(new).ravel().tolist() == [20.0, 5.0, 20.0]


def test_the_most_frequent_category_and_what_is_unknown_are_all_zeros():
    encoder = Encoder.fit(pa.table({"ward": ["B", "A", "A", "C"]}), ["ward"])
    assert encoder.names == ("ward=B", "ward=C")
    new = pa.table({"ward": ["A", "B", "C", None, "Z"]})
    assert encoder.encode(new).tolist() == [[0, 0], [1, 0], [0, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([3, 7, 3]),
        pa.array([3.0, 7.0, 3.0]),
        pa.array(["3", "7", "3"]),
        pa.array(["3.0", "7.0", "3.0"]),
        pa.array(["3", "7", "3"]).dictionary_encode(),
    ],
)
def test_a_code_is_the_same_category_however_it_is_written(values):
    encoder = Encoder.fit(pa.table({"thal": pa.array(["3", "3", "7"]).dictionary_encode()}), ["thal"])
    assert encoder.encode(pa.table({"thal": values})).ravel().tolist() == [0.0, 1.0, 0.0]


@given(st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), min_size=2, max_size=20))
def test_encoded_numbers_are_finite_and_known_ones_are_kept(values):
    table = pa.table({"x": pa.array(values, pa.float64())})
    encoded = Encoder.fit(table, ["x"]).encode(table).ravel()
    assert np.isfinite(encoded).all()
    assert [e for e, v in zip(encoded, values, strict=True) if v is not None] == [
        v for v in values if v is not None
    ]


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_whole_numbers_beyond_what_a_float_holds_are_rounded_alike_everywhere(kind):
    values = np.array([2**60 + 1, 2**60 + 10**6, 2**61], dtype=kind)
    frames = [
        pd.DataFrame({"n": values}),
        pa.table({"n": values}),
        pa.table({"n": pa.array(values, pa.uint64())}),
    ]
    made = [Encoder.fit(frame, ["n"]).encode(frame) for frame in frames]
    assert all(np.array_equal(one, values.astype(float)[:, None]) for one in made)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (["1", "2", "3", "high"], "holds numbers, but also text such as 'high' .1 of 4"),
        ([f"patient {i}" for i in range(101)], "holds 101 different texts"),
        (pa.array([0, 1], pa.date32()), "neither number nor text"),
    ],
)
def test_a_column_that_is_no_feature_is_refused(values, sentence):
    with pytest.raises(ValueError, match=sentence):
        Encoder.fit(pa.table({"x": values}), ["x"])


def test_codes_mixed_with_text_are_fine_if_said_to_be_categories():
    encoder = Encoder.fit(pa.table({"x": pa.array(["1", "1", "2", "high"]).dictionary_encode()}), ["x"])
    assert encoder.names == ("x=2", "x=high")


def test_what_had_to_be_filled_in_is_said():
    encoder = Encoder.fit(pa.table({"ward": ["A", "B"], "chol": [200.0, 220.0]}), ["ward", "chol"])
    remarks = encoder.remarks(pa.table({"ward": ["A", "Z"], "chol": pa.array([None, None], pa.float64())}))
    assert "never saw (Z; 50.0 % of rows)" in remarks[0]
    assert "of training is put there: 'chol' in all (210)" in remarks[1]
    few = pa.table({"ward": ["A"] * 19 + [None], "chol": [1.0] * 19 + [None]})
    (remark,) = encoder.remarks(few)
    assert "'ward' in 5 % ('A'), 'chol' in 5 % (210)" in remark
    assert encoder.remarks(pa.table({"ward": ["A"], "chol": [1.0]})) == []
    half = encoder.remarks(pa.table({"ward": ["A", "B"], "chol": [1.0, None]}))
    assert half == [
        "Missing in new rows; the median or most frequent category of training is put there: 'chol' in 50 % "
        "(210)."
    ]
    rarely = pa.table({"ward": ["A"] * 199 + [None], "chol": [None] + [1.0] * 199})
    assert encoder.remarks(rarely)[0].endswith("is put there: 2 columns in less than 1 %.")


def test_text_where_numbers_were_is_refused():
    encoder = Encoder.fit(pa.table({"age": [1.0, 2.0]}), ["age"])
    with pytest.raises(ValueError, match="'age' held numbers in training"):
        encoder.encode(pa.table({"age": ["old", "young"]}))


def test_all_columns_that_are_no_features_are_named_at_once():
    table = pa.table(
        {
            "age": list(range(120)),
            "case": [f"case {i}" for i in range(120)],
            "day": [f"2024-01-{i % 28 + 1:02}T{i // 28:02}:00" for i in range(120)],
            "seen on": pa.array(range(120), pa.date32()),
        }
    )
    with pytest.raises(ValueError, match="3 columns cannot be features") as refused:
        Encoder.fit(table, table.column_names)
    said = str(refused.value)
    assert "'case' holds 120 different texts, such as 'case 0'" in said
    assert "'seen on' holds dates" in said
    assert "(--drop 'case,day,seen on')" in said
    assert said.endswith("Of a date, make a number that matters, such as an age.")


def test_a_column_that_looks_like_an_id_is_doubted():
    rows = {"age": [40, 41] * 60, "row": list(range(120)), "chol": [i + 0.5 for i in range(120)]}
    encoder = Encoder.fit(pa.table(rows), list(rows))
    (doubt,) = encoder.doubts(pa.table(rows))
    assert doubt.startswith("'row' has another whole number in every row and counts as a feature")
    assert Encoder.fit(pa.table(rows), ["age", "chol"]).doubts(pa.table(rows)) == []
    few = pa.table({name: cells[:50] for name, cells in rows.items()})
    assert encoder.doubts(few) == []
