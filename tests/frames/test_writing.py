import pyarrow as pa
import pytest

from sfboost.frames.reading import find, read
from sfboost.frames.writing import open_table, whole_output

BATCH = pa.RecordBatch.from_pydict({"id": ["a", "b"], "p": [0.25, 0.75]})


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_what_is_written_in_batches_is_read_as_one_table(tmp_path, kind):
    path = tmp_path / "new folder" / "out"
    with open_table(str(path), kind) as write:
        write(BATCH)
        write(BATCH)
    assert read(find(str(path))).to_pydict() == {"id": ["a", "b"] * 2, "p": [0.25, 0.75] * 2}


def test_the_file_is_whole_or_as_it_was_before(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("before")

    def fail_halfway():
        with open_table(str(path), "csv") as write:
            write(BATCH)
            assert path.read_text() == "before"
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fail_halfway()
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.csv"]


def test_a_page_is_whole_too(tmp_path):
    with whole_output(tmp_path / "page.html") as part:
        part.write_text("<p>")
        assert not (tmp_path / "page.html").exists()
    assert (tmp_path / "page.html").read_text() == "<p>"
