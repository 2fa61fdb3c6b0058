import warnings

import numpy as np
import pytest

from sfboost.frames import Encoder, EncodingWarning
from sfboost_lab.datasets import load
from sfboost_lab.datasets.own_tables import encode as encode_loudly
from sfboost_lab.datasets.own_tables import from_table

pd = pytest.importorskip("pandas", reason="tables need pandas: pip install 'sfboost[app]'")


@pytest.fixture
def rows():
    return pd.DataFrame(
        {
            "age": [30, 40, 50, 60, 70, 80],
            "pressure": [120.0, None, 130.0, 140.0, None, 150.0],
            "smokes": [True, False, True, True, False, False],
            "ward": ["a", "b", None, "a", "c", None],
            "town": ["X", "X", "X", "Y", "Y", "Z"],
            "sick": ["no", "yes", "yes", "no", "yes", "no"],
        }
    )


def encode(dataset):
    """Most tables here miss cells; that this is said has a test of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EncodingWarning)
        return encode_loudly(dataset)


def made(rows, **options):
    return from_table(rows, **{"target": "sick", "domain": "town", "test": "Z"} | options)


def test_each_value_of_the_domain_column_is_a_domain(rows):
    dataset = made(rows)
    assert {d.name: len(d) for d in dataset.domains} == {"X": 3, "Y": 2, "Z": 1}
    assert (dataset.train, dataset.test) == (("X", "Y"), ("Z",))
    assert dataset.classes == ("no", "yes")
    assert dataset.domain("X").y.tolist() == [0, 1, 1]
    assert list(dataset.domain("X").X.columns) == ["age", "pressure", "smokes", "ward"]


def test_the_users_frame_is_not_changed(rows):
    before = rows.copy(deep=True)
    encode(made(rows))
    pd.testing.assert_frame_equal(rows, before)


def test_a_table_is_encoded_as_the_command_encodes_it(rows):
    pa = pytest.importorskip("pyarrow", reason="the command reads tables with pyarrow")
    dataset = encode(made(rows))
    assert dataset.feature_names == ["age", "pressure", "smokes", "ward=b", "ward=c"]
    command = Encoder.fit(pa.Table.from_pandas(rows.iloc[:5]), ["age", "pressure", "smokes", "ward"])
    np.testing.assert_array_equal(
        np.vstack([d.X for d in dataset.domains]),
        command.encode(pa.Table.from_pandas(rows)),
    )


def test_what_is_filled_in_is_said(rows):
    with pytest.warns(EncodingWarning, match=r"in training rows;.* 'pressure' in 40 % \(130\)"):
        encode_loudly(made(rows))


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_frames_of_other_libraries_give_the_same(rows, library):
    nw = pytest.importorskip("narwhals")
    pytest.importorskip(library)
    other = nw.from_dict(
        {name: rows[name].astype(object).where(rows[name].notna(), None).tolist() for name in rows.columns},
        backend=library,
    ).to_native()
    np.testing.assert_array_equal(encode(made(other)).domain("X").X, encode(made(rows)).domain("X").X)


def test_known_features_become_positions(rows):
    dataset = encode(made(rows, stable_features=["ward", "age"], unstable_features=["smokes"]))
    stable = [dataset.feature_names[k] for k in dataset.stable_features]
    assert stable == ["age", "ward=b", "ward=c"]
    assert [dataset.feature_names[k] for k in dataset.unstable_features] == ["smokes"]
    assert encode(made(rows)).stable_features is None


def test_test_rows_may_lack_labels_and_training_rows_that_do_are_left_out(rows):
    unlabelled = rows.assign(sick=[0, 1, 1, 0, 1, None])
    dataset = made(unlabelled)
    assert dataset.classes == (0, 1)
    assert dataset.domain("Z").y.tolist() == [-1]
    with pytest.raises(ValueError, match=r"Training domains \['Z'\] have no row with 'sick'"):
        made(unlabelled, test="X")
    some = rows.assign(sick=[0, None, 1, 0, 1, None])
    n_rows = len(made(rows).domain("X").y)
    with pytest.warns(EncodingWarning, match="1 row has no 'sick' and is left out"):
        dataset = made(some)
    assert len(dataset.domain("X").y) == len(dataset.domain("X").X) == n_rows - 1
    assert dataset.domain("Z").y.tolist() == [-1]


def test_rows_without_a_domain_are_left_out(rows):
    where = rows["town"].astype(object).where(rows.index != 1)
    with pytest.warns(EncodingWarning, match="1 row has no 'town' and is left out"):
        dataset = made(rows.assign(town=where))
    assert dataset.domain_names == made(rows).domain_names
    assert len(dataset.domain("X").X) == len(made(rows).domain("X").X) - 1


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        ({}, {"target": "ill"}, r"no column \['ill'\]"),
        ({}, {"drop": ["id"]}, r"no column \['id'\]"),
        ({}, {"stable_features": ["sick"]}, "dropped, the target or the domain"),
        ({}, {"stable_features": ["age"], "unstable_features": ["age"]}, "in both lists"),
        ({}, {"test": "W"}, r"names \['W'\] as test"),
        ({"sick": "yes"}, {}, "holds 1 class"),
        ({"town": None}, {}, "No row says its 'town'"),
        ({"when": pd.Timestamp("2020-01-01")}, {}, "dates or times"),
    ],
)
def test_a_wrong_table_is_answered_by_a_sentence(rows, change, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        made(rows.assign(**change), **options)


def test_columns_of_one_name_and_files_that_are_no_tables_are_refused(rows, tmp_path):
    twice = pd.concat([rows, rows[["age"]]], axis=1)
    twice.to_csv(tmp_path / "twice.csv", index=False)
    for source in (twice, tmp_path / "twice.csv"):
        with pytest.raises(ValueError, match=r"several columns named \['age'\]"):
            made(source)
    with pytest.raises(FileNotFoundError, match=r"There is no file .*rows\.pickle"):
        made(tmp_path / "rows.pickle")
    rows.to_pickle(tmp_path / "rows.pickle")
    with pytest.raises(ValueError, match=r"rows\.pickle is no table we can read: CSV, Parquet and Arrow are"):
        made(tmp_path / "rows.pickle")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "arrow", "data"])
def test_a_file_is_read_as_the_command_reads_it(rows, tmp_path, ending):
    """Semicolons, decimal commas, Windows-1252 and "?" for what is missing; compressed; Arrow."""
    pytest.importorskip("pyarrow", reason="the command reads tables with pyarrow")
    named = rows.assign(pressure=rows["pressure"] + 0.5, town=["Zürich"] * 3 + ["01"] * 3)
    path = tmp_path / f"rows.{ending}"
    if ending == "arrow":
        named.to_feather(path)
    else:
        named.to_csv(path, index=False, sep=";", decimal=",", encoding="cp1252", na_rep="?")
    from_file, from_frame = (encode(made(source, test="01")) for source in (path, named))
    assert from_file.domain_names == ("Zürich", "01")
    for a, b in zip(from_file.domains, from_frame.domains, strict=True):
        np.testing.assert_array_equal(a.X, b.X)
        np.testing.assert_array_equal(a.y, b.y)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_index_of_a_frame_is_no_feature_unless_it_is_named(rows, tmp_path, ending):
    pytest.importorskip("pyarrow", reason="the command reads tables with pyarrow")
    path = tmp_path / f"rows.{ending}"
    if ending == "csv":
        rows.to_csv(path)
    else:
        rows.set_axis(pd.Index([7, 3, 9, 4, 8, 5], name="patient")).to_parquet(path)
    with pytest.warns(EncodingWarning, match="looks like the index of a pandas table and is left out"):
        dataset = made(path)
    assert dataset.feature_names == made(rows).feature_names
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named = made(path, unstable_features=["" if ending == "csv" else "patient"])
    assert len(named.feature_names) == len(dataset.feature_names) + 1


def test_an_array_needs_no_encoding():
    with pytest.raises(TypeError, match="not a table"):
        encode(load("ac", n_rows=3))


def test_ones_own_table_is_found_by_name(rows, tmp_path):
    rows.to_csv(tmp_path / "rows.csv", index=False)
    options = {"target": "sick", "domain": "town", "test": "Z"}
    with pytest.warns(EncodingWarning):
        by_name = load("table", source="rows.csv", data_dir=tmp_path, encoded=True, **options)
    np.testing.assert_array_equal(by_name.domain("X").X, encode(made(rows)).domain("X").X)
