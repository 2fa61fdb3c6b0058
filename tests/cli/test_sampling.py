"""`--sample`: training tables that do not fit into memory."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hospitals import ROLES, training

from sfboost import load
from sfboost.cli import inputs
from sfboost.cli.inputs import DomainSample


def gather(frame, rows, most=100):
    sample = DomainSample("hospital", most)
    for batch in pa.Table.from_pandas(frame, preserve_index=False).to_batches(rows):
        sample.add(batch)
    return sample


def test_the_same_rows_are_taken_whatever_their_order_and_the_batches(monkeypatch):
    frame = training(400)
    mixed = frame.sample(frac=1.0, random_state=0)
    whole = gather(frame, 10_000).table()
    monkeypatch.setattr(inputs, "_GATHERED", 350)
    parts = gather(mixed, 90)
    assert parts._gathered < 350 + 90
    assert parts.table().equals(whole)
    assert parts.n_rows == 1200


def test_of_each_domain_at_most_so_many_rows_are_taken_and_they_are_like_the_others():
    frame = pd.concat([training(1000), training(30).assign(hospital="tiny")])
    table = gather(frame, 500, most=200).table().to_pandas()
    sizes = table["hospital"].value_counts().to_dict()
    assert sizes == {"north": 200, "south": 200, "east": 200, "tiny": 90}
    north = frame[frame["hospital"] == "north"]["age"]
    taken = table[table["hospital"] == "north"]["age"]
    assert abs(taken.mean() - north.mean()) < 4.0 * north.std() / np.sqrt(200)


def test_rows_without_a_domain_are_no_domain(sfboost, tmp_path):
    frame = training(100)
    frame["hospital"] = frame["hospital"].where(frame.index % 10 != 0)
    sample = gather(frame, 70, most=50)
    assert sample.table().num_rows == 150
    assert (sample.n_rows, sample.n_nowhere) == (300, 30)
    frame.to_csv(tmp_path / "train.csv", index=False)
    fit = ("fit", tmp_path / "train.csv", *ROLES, "--no-evaluate", "-o", tmp_path / "m.sfb", "--sample", 50)
    assert "(--sample). 30 rows have no 'hospital' and are left out." in sfboost(*fit).stderr
    frame.assign(hospital=None).to_csv(tmp_path / "train.csv", index=False)
    assert "lacks its 'hospital'" in sfboost(*fit, code=2).stderr


def test_a_gap_in_a_batch_does_not_change_what_is_taken_of_the_others():
    frame = training(100).drop(columns="chol").assign(beds=np.arange(300))
    gaps = frame.astype({"beds": "Int64"})
    gaps.loc[0, "beds"] = pd.NA
    one, other = (gather(part, 100, most=20).table().to_pandas()["patient"] for part in (frame, gaps))
    assert len(set(one) - set(other)) <= 1


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_folder_is_fitted_to_by_a_sample_that_the_command_names(sfboost, tmp_path, ending):
    folder = tmp_path / "train"
    folder.mkdir()
    for name, part in training(200).drop(columns="patient").groupby("hospital"):
        if ending == "csv":
            part.to_csv(folder / f"{name}.csv", index=False, sep=";", decimal=",")
        else:
            part.to_parquet(folder / f"{name}.parquet", index=False)
    roles = ROLES[:-2]
    said = sfboost("fit", folder, *roles, "-o", tmp_path / "m.sfb", code=2).output
    assert "--sample" in said
    done = sfboost("fit", folder, *roles, "-o", tmp_path / "m.sfb", "--no-evaluate", "--sample", 150)
    said = " ".join(done.output.split())
    assert "450 of the 600 rows of train, at most 150 of each domain (--sample)" in said
    model = load(tmp_path / "m.sfb")
    assert set(model.unstable_columns_.names) == {"heart_rate", "ward=B", "ward=C"}
