"""A table in whatever parts, order and format has one sample; its rows are read once each, in order."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from hospitals import training

from sfboost.frames import blocks
from sfboost.frames.blocks import Block, find_blocks, over_blocks, sample_rows


@pytest.fixture(scope="module")
def rows():
    """Whole numbers, fractions and text; some cells are empty, some rows are twice there."""
    rng = np.random.default_rng(0)
    frame = training(500).drop(columns="patient").assign(beds=rng.integers(0, 9, 1500))
    frame.loc[::7, "ward"] = None
    return pd.concat([frame, frame.iloc[:100]], ignore_index=True)


def sampled(source, most=200, **options):
    """The sample as sorted text, so that types of files do not matter."""
    table = sample_rows(source, most, **options).table.to_pandas()
    cells = table[sorted(set(table.columns) - {"__index_level_0__"})].astype({"beds": float})
    return cells.astype(object).where(cells.notna(), "").astype(str).agg(" ".join, axis=1).tolist()


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_file_of_any_kind_and_in_any_order_has_one_sample(rows, tmp_path, ending):
    mixed = rows.sample(frac=1.0, random_state=0).reset_index(drop=True)
    path = tmp_path / f"new.{ending}"
    write = {"csv": mixed.to_csv, "parquet": mixed.to_parquet}.get(ending)
    mixed.to_feather(path) if write is None else write(path, index=False)
    assert sampled(path) == sampled(pa.Table.from_pandas(rows))


def test_a_folder_and_streams_of_other_libraries_have_one_sample(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_GATHERED", 300)
    mixed = rows.sample(frac=1.0, random_state=1)
    for first in range(0, len(mixed), 137):
        mixed.iloc[first : first + 137].to_parquet(tmp_path / f"{first:04}.parquet", row_group_size=50)
    whole = sampled(pa.Table.from_pandas(rows))
    assert sampled(find_blocks(tmp_path, columns=rows.columns)) == whole
    assert sampled(polars.from_pandas(mixed)) == whole
    duckdb = pytest.importorskip("duckdb", reason="comes with the dev extra")
    with duckdb.connect() as database:
        query = f"SELECT * EXCLUDE (__index_level_0__) FROM '{tmp_path}/*.parquet' ORDER BY chol"
        assert sampled(database.sql(query)) == whole


def test_rows_of_few_kinds_are_drawn_as_often_as_they_are_there():
    """Copies have one hash: all of them or none would be a sample of kinds, not of rows."""
    table = pa.table({"sick": np.repeat([0, 1, 2], [80_000, 15_000, 5000])})
    sample = sample_rows(table, 1000)
    assert (sample.n_rows, sample.table.num_rows) == (100_000, 1000)
    shares = np.bincount(sample.table["sick"].to_numpy()) / 1000
    np.testing.assert_allclose(shares, [0.8, 0.15, 0.05], atol=4 * np.sqrt(0.16 / 1000))


def test_a_sample_is_like_all_rows():
    values = np.random.default_rng(0).normal(size=100_000)
    drawn = sample_rows(pa.table({"x": values, "y": np.arange(100_000)}), 10_000).table
    assert len(set(drawn["y"].to_pylist())) == 10_000
    assert abs(drawn["x"].to_numpy().mean()) < 4 / np.sqrt(10_000)


def test_of_each_domain_at_most_so_many_rows_are_taken(rows, monkeypatch):
    monkeypatch.setattr(blocks, "_GATHERED", 300)
    table = pa.Table.from_pandas(pd.concat([rows, training(30).assign(hospital="tiny")]))
    sample = sample_rows(table.to_reader(90), 200, by="hospital")
    counts = sample.table.to_pandas()["hospital"].value_counts().to_dict()
    assert counts == {"north": 200, "south": 200, "east": 200, "tiny": 90}


def test_rows_without_a_domain_are_counted_and_left_out(rows):
    gaps = rows.assign(hospital=rows["hospital"].where(rows.index % 10 != 0))
    sample = sample_rows(pa.Table.from_pandas(gaps), 50, by="hospital")
    assert (sample.table.num_rows, sample.n_rows, sample.n_nowhere) == (150, 1600, 160)


def test_a_gap_in_a_batch_does_not_change_what_is_taken_of_the_others(rows):
    once = rows.iloc[:1500]
    gaps = once.astype({"beds": "Int64"})
    gaps.loc[0, "beds"] = pd.NA
    whole, other = (sampled(pa.Table.from_pandas(frame).to_reader(100)) for frame in (once, gaps))
    assert len(set(whole) ^ set(other)) <= 3


def test_a_long_parquet_file_is_several_blocks_with_all_its_rows_in_order(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_BLOCK_ROWS", 500)
    path = tmp_path / "long.parquet"
    rows.to_parquet(path, row_group_size=200)
    found = find_blocks(path, columns=["age"])
    assert [len(block.groups) for block in found] == [2, 3, 2, 1]
    ages = pa.Table.from_batches(over_blocks(iter, found))["age"]
    np.testing.assert_array_equal(ages.to_numpy(), rows["age"])


def test_a_file_that_lacks_a_column_is_named(rows, tmp_path):
    rows.to_csv(tmp_path / "a.csv", index=False)
    rows.drop(columns="age").to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(ValueError, match=r"b\.csv has no column 'age'"):
        sample_rows(find_blocks(tmp_path, needed=["age"]), skipped=[])


def test_files_whose_columns_hold_different_things_are_refused(rows, tmp_path):
    rows.to_parquet(tmp_path / "a.parquet")
    rows.assign(age="old").to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="columns of different types"):
        _ = sample_rows(tmp_path).table


@pytest.fixture
def spoilt(rows, tmp_path):
    """Three files, and between them one that is cut short."""
    for i in range(3):
        rows.iloc[500 * i : 500 * (i + 1)].to_parquet(tmp_path / f"{i}.parquet")
    data = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "1b.parquet").write_bytes(data[: len(data) // 2])
    return tmp_path


def test_a_block_that_cannot_be_read_is_named_or_skipped(spoilt):
    with pytest.raises(ValueError, match=r"1b\.parquet cannot be read.*--skip-unreadable"):
        sample_rows(spoilt)
    skipped = []
    assert sample_rows(spoilt, skipped=skipped).n_rows == 1500
    (why,) = skipped
    assert "1b.parquet cannot be read" in why


def test_tables_that_are_not_there_are_told(tmp_path):
    for where, sentence in ((tmp_path / "no", "There is no file"), (tmp_path, "holds no table")):
        with pytest.raises(ValueError, match=sentence):
            find_blocks(where)
    with pytest.raises(ValueError, match="use one of here, ray"):
        list(over_blocks(iter, [], engine="spark"))
    with pytest.raises(ValueError, match="at least one row is needed"):
        sample_rows(pa.table({"age": pa.array([], pa.float64())}))


@pytest.fixture(scope="module")
def two_workers():
    ray = pytest.importorskip("ray", reason="the [ray] extra brings the engine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # Ray starts its workers from this environment
        ray.init(
            address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error"
        )
        yield
        ray.shutdown()


@pytest.mark.long
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_on_ray_the_sample_and_what_is_made_of_rows_are_the_same(rows, spoilt, tmp_path, two_workers):
    marker = tmp_path / "killed"

    def halve(batches):
        for batch in batches:
            if not marker.exists():  # the first worker dies; Ray does its block again
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield pa.record_batch([pa.array(batch["age"].to_numpy() / 2)], ["half"])

    skipped = []
    there = pa.Table.from_batches(over_blocks(halve, spoilt, engine="ray", skipped=skipped))["half"]
    np.testing.assert_array_equal(there.to_numpy(), rows["age"][:1500] / 2)
    assert "1b.parquet cannot be read" in skipped[0]
    assert sampled(spoilt, engine="ray", skipped=[]) == sampled(spoilt, skipped=[])
    with pytest.raises(ValueError, match=r"^0\.parquet has no column 'pulse'"):
        sample_rows([Block(str(spoilt / "0.parquet"), needed=("pulse",))], engine="ray")
    assert Path(marker).exists()
