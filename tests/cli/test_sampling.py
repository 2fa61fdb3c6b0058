"""Tables that are long: `--sample` of training rows, folders and long files of new ones."""

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hospitals import ROLES

from sfboost.cli import inputs


@pytest.fixture(scope="module")
def folder(files, tmp_path_factory):
    """The rows of the new hospital in three files of two kinds."""
    folder = tmp_path_factory.mktemp("parts")
    rows = pd.read_csv(files.labelled)
    rows.iloc[:300].to_csv(folder / "a.csv", index=False)
    rows.iloc[300:500].to_parquet(folder / "b.parquet", index=False)
    rows.iloc[500:].to_csv(folder / "c.csv", index=False)
    return folder


def predictions(sfboost, model, table, path):
    sfboost("predict", model, table, "-o", path)
    return pd.read_parquet(path).set_index("patient").sort_index()


def test_a_folder_is_adapted_to_and_predicted_as_the_table_that_it_is(sfboost, files, folder, tmp_path):
    told = sfboost.json(
        "adapt", files.model, folder, "-o", tmp_path / "here.sfb", "--report", tmp_path / "r.html"
    )
    assert told["rows"] == 800
    whole = sfboost.json("adapt", files.model, files.labelled, "-o", tmp_path / "there.sfb")
    assert (told["decision"], told["reason"]) == (whole["decision"], whole["reason"])
    here = predictions(sfboost, tmp_path / "here.sfb", folder, tmp_path / "here.parquet")
    there = predictions(sfboost, tmp_path / "there.sfb", files.labelled, tmp_path / "there.parquet")
    pd.testing.assert_frame_equal(here, there, atol=1e-6)


def test_a_long_file_is_adapted_to_by_a_sample_and_that_is_said(sfboost, files, tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "_LONG_BYTES", 1000)
    monkeypatch.setattr(inputs, "sample_rows", lambda *a, **k: inputs_sample(*a, 400, **k))
    out = tmp_path / "out.parquet"
    told = sfboost.json("run", files.train, files.new, *ROLES, "--no-evaluate", "-o", out)
    assert told["rows"] == 800
    assert "Adapted to 400 of the 800 rows" in " ".join(told["remarks"])
    assert pq.read_metadata(out).num_rows == 800


inputs_sample = inputs.sample_rows


def test_an_unreadable_file_is_named_or_left_out(sfboost, files, folder, tmp_path):
    new = tmp_path / "new"
    new.mkdir()
    for path in folder.iterdir():
        (new / path.name).write_bytes(path.read_bytes())
    (new / "b.parquet").write_bytes(b"PAR1 and no more")
    for command in ("adapt", "predict"):
        output = ("-o", tmp_path / ("a.sfb" if command == "adapt" else "p.csv"))
        failed = sfboost(command, files.adapted, new, *output, code=2)
        assert "b.parquet cannot be read" in failed.stderr
        assert "--skip-unreadable" in failed.stderr
        assert not output[1].exists()
        done = sfboost(command, files.adapted, new, *output, "--skip-unreadable", "--json")
        assert '"rows": 600' in done.stdout
        assert "Left out: b.parquet" in done.stderr


def test_an_engine_that_is_not_there_is_a_sentence(sfboost, files, folder, tmp_path):
    failed = sfboost("adapt", files.model, folder, "-o", tmp_path / "a.sfb", "--engine", "spark", code=2)
    assert "use one of here, ray" in failed.stderr


def test_what_is_said_of_ids_is_said_of_all_rows(sfboost, files, tmp_path):
    """Of a sample nobody can tell whether an id is there twice."""
    new = pd.read_csv(files.new)
    new.loc[1, "patient"] = new.loc[0, "patient"]
    (tmp_path / "new").mkdir()
    new.to_csv(tmp_path / "new" / "a.csv", index=False)
    told = sfboost.json("adapt", files.model, tmp_path / "new", "-o", tmp_path / "a.sfb")
    assert not [remark for remark in told["remarks"] if "more than once" in remark]
