from datetime import date, datetime

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfboost.frames import Encoder


def test_a_missing_number_is_the_median_of_training():
    encoder = Encoder.fit(pa.table({"age": [10.0, 20.0, 60.0, None]}), ["age"])
    new = pa.table({"age": [None, 5.0, float("nan")]})
    assert encoder.encode(new).ravel().tolist() == [20.0, 5.0, 20.0]


def test_the_most_frequent_category_is_all_zeros_and_what_is_unknown_lies_between_all():
    encoder = Encoder.fit(pa.table({"ward": ["B", "A", "A", "C", None]}), ["ward"])
    assert encoder.names == ("ward=B", "ward=C")
    new = pa.table({"ward": ["A", "B", "C", None, "Z"]})
    assert encoder.encode(new).tolist() == [[0, 0], [1, 0], [0, 1], [0.25, 0.25], [0.25, 0.25]]


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


def test_a_column_of_numbers_with_mistakes_in_it_is_refused():
    with pytest.raises(ValueError, match=r"holds numbers, but also text such as 'high' .1 of 4"):
        Encoder.fit(pa.table({"x": ["1", "2", "3", "high"]}), ["x"])


def test_codes_mixed_with_text_are_fine_if_said_to_be_categories():
    encoder = Encoder.fit(pa.table({"x": pa.array(["1", "1", "2", "high"]).dictionary_encode()}), ["x"])
    assert encoder.names == ("x=2", "x=high")


def test_what_had_to_be_filled_in_is_said():
    encoder = Encoder.fit(pa.table({"ward": ["A", "B"], "chol": [200.0, 220.0]}), ["ward", "chol"])
    remarks = encoder.remarks(pa.table({"ward": ["A", "Z"], "chol": pa.array([None, None], pa.float64())}))
    assert "never saw (Z; 50.0 % of rows)" in remarks[0]
    assert "is put there: 'chol' in all (210)" in remarks[1]
    assert encoder.remarks(pa.table({"ward": ["A"] * 19 + [None], "chol": [1.0] * 19 + [None]})) == [
        "Missing in new rows; the median or the mean of all categories is put there: 'ward' in 5 %, 'chol' "
        "in 5 % (210)."
    ]
    assert encoder.remarks(pa.table({"ward": ["A"], "chol": [1.0]})) == []


def test_text_where_numbers_were_is_refused():
    encoder = Encoder.fit(pa.table({"age": [1.0, 2.0]}), ["age"])
    with pytest.raises(ValueError, match="'age' held numbers in training"):
        encoder.encode(pa.table({"age": ["old", "young"]}))


def test_what_is_no_feature_is_left_out_and_said():
    table = pa.table({"age": [float(i) for i in range(120)], "case": [f"case {i}" for i in range(120)]})
    encoder = Encoder.fit(table, ["age", "case"], gaps=["age", "case"])
    assert encoder.names == encoder.sources == ("age",)
    assert encoder.doubts(table) == [
        "Left out, neither numbers nor dates nor at most 100 different texts: 'case'."
    ]
    assert encoder.remarks(table) == encoder.lacking(["age"]) == []
    np.testing.assert_array_equal(encoder.encode(table.select(["age"])), encoder.encode(table))
    lists = pa.table({"x": [[1], [2, 3], None]})
    assert Encoder.fit(lists, ["x"]).encode(lists).shape == (3, 0)


LIBRARIES = {"pandas": pd.DataFrame, "polars": polars.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("library", LIBRARIES)
def test_missing_text_is_a_category_of_its_own_where_it_may_be_learned(library):
    """Where most cells are missing they are not taken for the most frequent of the others: the severest."""
    frame = LIBRARIES[library]({"a1c": [None] * 86 + [">8"] * 8 + [">7"] * 4 + ["Norm"] * 4})
    unstable, stable = Encoder.fit(frame, ["a1c"], gaps=["a1c"]), Encoder.fit(frame, ["a1c"])
    assert unstable.names == ("a1c=>7", "a1c=Norm", "a1c is missing")
    cells = frame[[0, 86, 94]] if library == "polars" else frame.take([0, 86, 94])
    assert unstable.encode(cells).tolist() == [[0.25, 0.25, 1], [0, 0, 0], [1, 0, 0]]
    assert stable.encode(cells).tolist() == [[0.25, 0.25], [0, 0], [1, 0]]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["[60-70)", "[0-10)", "[10-20)"], [60, 0, 10]),
        (["(60, 70]", "(-5, 10]", "(70, inf]"], [60, -5, 70]),
        (["<18", "18-25", "65+", "25 to 65"], [9, 18, 65, 25]),
        (["10+ years", "1 year", "< 1 year"], [10, 1, 0.5]),
        (["5", "<5", "12"], [5, 2.5, 12]),
        (["$0-$10", "$10-$20", ">$20"], [0, 10, 20]),
    ],
)
def test_brackets_and_text_with_numbers_are_in_order(library, texts, numbers):
    frame = LIBRARIES[library]({"x": [*texts, None, texts[0]]})
    encoder = Encoder.fit(frame, ["x"])
    middle = np.median([*numbers, numbers[0]])
    assert encoder.encode(frame).ravel().tolist() == [*numbers, middle, numbers[0]]
    assert "Text with numbers in it, read as the first of them" in encoder.doubts(frame)[0]
    new = LIBRARIES[library]({"x": ["unknown", texts[1]]})
    assert encoder.encode(new).ravel().tolist() == [middle, numbers[1]]
    assert "'x' in 50 %" in encoder.remarks(new)[0]
    assert encoder.cells(new[1:])["x"] == texts[1]


@pytest.mark.parametrize(
    "texts",
    [
        [">7", ">8", "Norm"],
        ["ward 1", "ward 2", "ward 3"],
        ["1st", "2nd", "3rd"],
        ["2024-01", "2024-02", "2024-03"],
        ["3", "6", "7"],
    ],
)
def test_other_text_with_numbers_is_categories(texts):
    frame = pd.DataFrame({"x": texts})
    assert Encoder.fit(frame, ["x"]).names == (f"x={texts[1]}", f"x={texts[2]}")


def test_a_categorical_column_is_categories_whatever_is_written_in_it():
    frame = pd.DataFrame({"x": ["<18", "18-25", "65+"]}, dtype="category")
    assert Encoder.fit(frame, ["x"]).names == ("x=65+", "x=<18")
    assert Encoder.fit(pd.DataFrame({"x": pd.cut([1, 3, 5], [0, 2, 4, 6])}), ["x"]).names == ("x",)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "cells",
    [
        [date(2024, 1, 31), date(1969, 12, 31)],
        [datetime(2024, 1, 31, 23, 59), datetime(1969, 12, 31, 1)],
        ["2024-01-31", "1969-12-31T10:00:00Z"],
        ["31.1.2024", "31.12.1969 10:00"],
        ["1/31/2024", "12/31/1969"],
        ["31/1/2024", "31/12/1969"],
    ],
)
def test_dates_are_days(library, cells):
    frame = LIBRARIES[library]({"x": [*cells, None]})
    encoder = Encoder.fit(frame, ["x"])
    assert encoder.encode(frame).ravel().tolist() == [19753, -1, 9876]
    assert "read as the number of days since 1970: 'x'" in encoder.doubts(frame)[0]
    if isinstance(cells[0], date):  # as a CSV file has it
        assert encoder.encode(pa.table({"x": ["2024-01-31"]})).item() == 19753


def test_a_column_that_looks_like_an_id_is_doubted():
    rows = {"age": [40, 41] * 60, "row": list(range(120)), "chol": [i + 0.5 for i in range(120)]}
    encoder = Encoder.fit(pa.table(rows), list(rows))
    (doubt,) = encoder.doubts(pa.table(rows))
    assert doubt.startswith("Another whole number in every row, and counted as a feature: 'row'.")
    assert Encoder.fit(pa.table(rows), ["age", "chol"]).doubts(pa.table(rows)) == []
    few = pa.table({name: cells[:50] for name, cells in rows.items()})
    assert encoder.doubts(few) == []
