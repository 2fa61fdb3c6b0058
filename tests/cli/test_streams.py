"""Long tables and folders go through the command block by block, with the same results."""

import subprocess
import sys

import pandas as pd
import pyarrow.parquet as pq
import pytest

from sfboost.cli import streams


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


def test_a_folder_is_adapted_to_as_the_table_that_it_is(sfboost, files, folder, tmp_path):
    told = sfboost.json(
        "adapt", files.model, folder, "-o", tmp_path / "here.sfb", "--report", tmp_path / "r.html"
    )
    assert told["rows"] == 800
    whole = sfboost.json("adapt", files.model, files.labelled, "-o", tmp_path / "there.sfb")
    assert (told["decision"], told["reason"]) == (whole["decision"], whole["reason"])
    here = predictions(sfboost, tmp_path / "here.sfb", files.labelled, tmp_path / "here.parquet")
    there = predictions(sfboost, tmp_path / "there.sfb", files.labelled, tmp_path / "there.parquet")
    pd.testing.assert_frame_equal(here, there, atol=1e-6)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_long_file_is_read_block_by_block_and_that_is_said(sfboost, files, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "_LONG_BYTES", 1000)
    roles = ("--target", "sick", "--domain", "hospital", "--stable", "age,sex,chol", "--id", "patient")
    out = tmp_path / "out.parquet"
    told = sfboost.json("run", files.train, files.labelled, *roles, "--no-evaluate", "-o", out)
    assert told["rows"] == 800
    assert pq.read_metadata(out).num_rows == 800


def test_predictions_of_a_folder_as_one_file_or_as_a_folder(sfboost, files, folder, tmp_path):
    one = predictions(sfboost, files.adapted, folder, tmp_path / "one.parquet")
    told = sfboost.json("predict", files.adapted, folder, "-o", f"{tmp_path}/many/")
    assert told["rows"] == 800
    parts = sorted((tmp_path / "many").iterdir())
    assert [path.name[12:] for path in parts] == ["a.parquet", "b.parquet", "c.parquet"]
    many = pd.concat([pd.read_parquet(path) for path in parts]).set_index("patient").sort_index()
    pd.testing.assert_frame_equal(one, many)


def test_a_block_that_cannot_be_read_leaves_no_folder_and_the_rest_is_not_done_again(
    sfboost, files, folder, tmp_path, monkeypatch
):
    new = tmp_path / "new"
    new.mkdir()
    for path in folder.iterdir():
        (new / path.name).write_bytes(path.read_bytes())
    data = (new / "b.parquet").read_bytes()
    (new / "b.parquet").write_bytes(data[:200])
    failed = sfboost("predict", files.adapted, new, "-o", f"{tmp_path}/out/", code=2)
    assert "b.parquet cannot be read" in failed.stderr
    assert "--skip-unreadable" in failed.stderr
    assert not (tmp_path / "out").exists()
    (new / "b.parquet").write_bytes(data)
    again = sfboost("predict", files.adapted, new, "-o", f"{tmp_path}/out/")
    assert "predicted 500 rows" in again.stdout  # not a.csv again
    assert "1 of 3 blocks were predicted before this run" in again.stderr
    assert len(list((tmp_path / "out").iterdir())) == 3


def test_an_unreadable_file_is_left_out_if_that_is_asked_for(sfboost, files, folder, tmp_path):
    (tmp_path / "new").mkdir()
    for path in folder.iterdir():
        (tmp_path / "new" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "new" / "b.parquet").write_bytes(b"PAR1 and no more")
    options = ("-o", tmp_path / "a.sfb", "--skip-unreadable")
    told = sfboost.json("adapt", files.model, tmp_path / "new", *options)
    assert told["rows"] == 600
    assert any("b.parquet" in remark for remark in told["remarks"])


def test_an_engine_that_is_not_there_is_a_sentence(sfboost, files, folder, tmp_path):
    failed = sfboost("adapt", files.model, folder, "-o", tmp_path / "a.sfb", "--engine", "spark", code=2)
    assert "use one of here, ray" in failed.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are another matter there")
@pytest.mark.parametrize("command", ["adapt", "predict", "predict a folder"])
def test_on_a_full_disk_outputs_are_not_there_and_those_of_before_are(files, folder, tmp_path, command):
    """No file may be longer than 4 kB, which the system says as it says that the disk is full."""
    output = tmp_path / ("out" if command == "predict a folder" else "out.bin")
    if command != "predict a folder":
        output.write_text("old")
    words = ["adapt", files.model, folder, "-o", output]
    if command != "adapt":
        # CSV is written as it comes; the limit is reached in the middle of it.
        words = ["predict", files.adapted, folder, "-o", output, "--format", "csv"]
        words[4] = f"{output}/" if command == "predict a folder" else output
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)); "
        "from sfboost.cli import main; main()"
    )
    call = [sys.executable, "-B", "-c", code, *map(str, words)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr
    assert str(tmp_path) in done.stderr  # where
    assert "Traceback" not in done.stderr
    if command == "predict a folder":
        assert not output.exists()
    else:
        assert output.read_text() == "old"


def copies(folder, place, **more):
    """The files of a folder, and some more."""
    place.mkdir()
    for path in folder.iterdir():
        (place / path.name).write_bytes(path.read_bytes())
    for name, text in more.items():
        (place / f"{name}.csv").write_text(text)
    return place


def test_rows_that_are_alike_but_for_their_id_are_not_said_to_share_it(sfboost, files, tmp_path):
    new = pd.read_csv(files.new)
    new.loc[1] = {**new.loc[0], "patient": new.loc[1, "patient"]}
    (tmp_path / "new").mkdir()
    new.iloc[:400].to_csv(tmp_path / "new" / "a.csv", index=False)
    new.iloc[400:].to_csv(tmp_path / "new" / "b.csv", index=False)
    told = sfboost.json("adapt", files.model, tmp_path / "new", "-o", tmp_path / "a.sfb")
    assert not [remark for remark in told["remarks"] if "more than once" in remark]


def test_a_file_without_rows_is_told(sfboost, files, folder, tmp_path):
    header = (folder / "a.csv").read_text().splitlines()[0]
    new = copies(folder, tmp_path / "new", d=f"{header}\n")
    pd.read_parquet(folder / "b.parquet").iloc[:0].to_parquet(new / "e.parquet", index=False)
    told = sfboost.json("adapt", files.model, new, "-o", tmp_path / "a.sfb")
    assert "d.csv, e.parquet have a header but no rows." in told["remarks"]
    assert told["rows"] == 800


@pytest.mark.parametrize("row", ["", "1,2\n"])
def test_a_file_of_other_columns_is_refused_and_named_with_rows_or_without(
    sfboost, files, folder, tmp_path, row
):
    new = copies(folder, tmp_path / "new", d=f"a,b\n{row}")
    for command, output in (("adapt", "a.sfb"), ("predict", "p.csv")):
        model = files.model if command == "adapt" else files.adapted
        done = sfboost(command, model, new, "-o", tmp_path / output, code=2)
        assert "d.csv has no column" in done.stderr
