"""A table in whatever parts, order and format gets the adaptation that it gets in memory."""

from copy import copy
from dataclasses import replace

import numpy as np
import polars
import pyarrow as pa
import pytest

from sfboost import StableFeatureBoosting
from sfboost.heads import AdamLogisticRegression
from sfboost.streaming import adapt_stream, find_blocks
from sfboost.streaming.blocks import count_rows
from sfboost.streaming.packing import pack, unpack
from sfboost.streaming.rows import Look
from sfboost_lab.testing import Dials, simulate


def differs(hospital, source, **options):
    streamed = adapt_stream(hospital.model, source, **options)
    return np.abs(streamed.adapted.predict_proba(hospital.X) - hospital.proba).max()


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_file_of_any_kind_and_in_any_order(hospital, tmp_path, ending):
    shuffled = hospital.new.sample(frac=1.0, random_state=0)
    path = tmp_path / f"new.{ending}"
    if ending == "csv":
        shuffled.to_csv(path, index=False)
    elif ending == "parquet":
        shuffled.to_parquet(path, row_group_size=700)
    else:
        shuffled.reset_index(drop=True).to_feather(path)
    assert differs(hospital, path) < 1e-6


def test_a_folder_of_files(hospital):
    assert differs(hospital, hospital.folder) < 1e-6


def test_streams_that_are_read_once(hospital):
    reader = pa.Table.from_pandas(hospital.new).to_reader(max_chunksize=411)
    assert differs(hospital, reader) < 1e-6
    assert differs(hospital, polars.from_pandas(hospital.new)) < 1e-6


def test_what_duckdb_hands_over_is_read(hospital):
    duckdb = pytest.importorskip("duckdb", reason="comes with the dev extra")
    query = f"SELECT * FROM '{hospital.folder}/*.parquet' ORDER BY chol"
    with duckdb.connect() as database:
        assert differs(hospital, database.sql(query)) < 1e-6


@pytest.mark.parametrize("size", [137, 600, 2999])
def test_however_the_rows_are_cut_into_blocks(hospital, tmp_path, size):
    shuffled = hospital.new.sample(frac=1.0, random_state=size)
    for first in range(0, len(shuffled), size):
        part = shuffled.iloc[first : first + size]
        part.to_parquet(tmp_path / f"{first:04}.parquet", row_group_size=50)
    assert differs(hospital, tmp_path) < 1e-6


def test_a_model_of_an_array_reads_columns_by_their_place(hospital):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = rng.normal(size=(4000, 3)) + np.outer(y, [1.5, 1.0, 2.0])
    model = StableFeatureBoosting(stable_features=[0, 1]).fit(
        X[:2000], y[:2000], sample_domain=np.repeat(["a", "b"], 1000)
    )
    table = pa.table({f"c{i}": X[2000:, i] for i in range(3)})
    streamed = adapt_stream(model, table.to_reader(300)).adapted
    np.testing.assert_allclose(
        streamed.predict_proba(X[2000:]), model.adapt(X[2000:]).predict_proba(X[2000:]), atol=1e-6
    )


def test_a_long_parquet_file_is_several_blocks_with_all_its_rows(hospital, tmp_path, monkeypatch):
    monkeypatch.setattr("sfboost.streaming.blocks._BLOCK_ROWS", 1000)
    path = tmp_path / "long.parquet"
    hospital.new.to_parquet(path, row_group_size=400)
    blocks = find_blocks(path)
    assert len(blocks) == 4
    assert sum(batch.num_rows for block in blocks for batch in block.batches()) == 3000
    assert count_rows(blocks) == 3000


def test_what_travels_between_machines_comes_back_whole(hospital):
    batch = next(find_blocks(hospital.folder)[0].batches())
    looked = Look(hospital.model)(batch).fewest()
    again = unpack(pack(looked))
    np.testing.assert_array_equal(again.keys, looked.keys)
    np.testing.assert_array_equal(again.statistics.cross, looked.statistics.cross)
    assert again.rows.equals(looked.rows)
    assert b"pickle" not in pack(looked)


def test_a_head_of_ones_own_is_refused(hospital):
    rows = hospital.new
    model = StableFeatureBoosting(stable_features=["age"], unstable=AdamLogisticRegression())
    model.fit(rows[["age", "heart_rate"]], rows["sick"], sample_domain=["a", "b"] * 1500)
    with pytest.raises(ValueError, match="need all rows at once"):
        adapt_stream(model, hospital.folder)


def test_no_accuracy_is_claimed_where_the_new_rows_contradict_it(tmp_path):
    problem = simulate(Dials(n_rows=3000, new_violation=0.9, covariate_shift=0.3), seed=3)
    X, y, domain = problem.training_rows()
    names = [f"x{j}" for j in range(X.shape[1])]
    model = StableFeatureBoosting(names[:2]).fit(polars.DataFrame(X, names), y, domain)
    new = polars.DataFrame(problem.new.X, names)
    new.write_parquet(tmp_path / "new.parquet")
    for answer in ("best", "paper"):
        asked = {"answer": answer, "uncertainty": True}
        told = adapt_stream(model, tmp_path / "new.parquet", **asked).adapted.adaptation.uncertainty
        assert told.accuracy is None
        assert told.withheld == model.adapt(new, **asked).adaptation.uncertainty.withheld
        assert told.withheld.startswith("X_U follows f_S within a class")


def test_an_f_s_that_own_domains_contradict_is_doubted_in_blocks_as_it_is_in_memory(hospital):
    """In own domains it is worse than a guess: no careful answer rests on it, wherever the rows are."""
    model = copy(hospital.model)
    experience = model.training_.experience
    misled = replace(experience, reference=replace(experience.reference, stable_brier=1.0))
    model.training_ = replace(model.training_, experience=misled)
    with pytest.warns(UserWarning, match="worse than a guess"):
        here = model.adapt(hospital.X, answer="safe")
    with pytest.warns(UserWarning, match="worse than a guess"):
        streamed = adapt_stream(model, hospital.folder, answer="safe").adapted
    assert streamed.decision_ == here.decision_ == "kept stable"
    assert streamed.reason_ == here.reason_
