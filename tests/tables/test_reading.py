import gzip
import io
import os
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from sfboost.tables.reading import find, open_batches, read

TABLE = pa.table({"age": [40.5, None, 60.25], "sex": ["f", None, "m"]})


def to_bytes(kind, table=None):
    sink, table = io.BytesIO(), TABLE if table is None else table
    if kind == "parquet":
        pq.write_table(table, sink)
    elif kind == "arrow file":
        with ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    elif kind == "arrow stream":
        with ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        sink.write(CSV[kind])
    return sink.getvalue()


CSV = {
    "csv": b"age,sex\n40.5,f\n,\n60.25,m\n",
    "csv with BOM": b"\xef\xbb\xbfage,sex\r\n40.5,f\r\nNA,NA\r\n60.25,m\r\n",
    "semicolons and decimal commas": b"age;sex\n40,5;f\n?;?\n60,25;m\n",
    "utf-16": "age\tsex\n40.5\tf\n\t\n60.25\tm\n".encode("utf-16"),
    "quoted": b'"age","sex"\n"40.5","f"\n"",""\n"60.25","m"\n',
}
KINDS = [*CSV, "parquet", "arrow file", "arrow stream"]


@pytest.fixture(params=["file", "pipe"])
def source(request, tmp_path, monkeypatch):
    """A table in a file or on standard input."""

    def make(content):
        if request.param == "file":
            (tmp_path / "table.bin").write_bytes(content)
            return find(str(tmp_path / "table.bin"))
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        return find("-")

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_is_the_same_table(source, kind):
    assert read(source(to_bytes(kind))).to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize("kind", KINDS)
def test_a_compressed_table_is_the_same_table(source, kind):
    assert read(source(gzip.compress(to_bytes(kind)))).to_pydict() == TABLE.to_pydict()


def test_a_large_compressed_table_is_read_in_batches(source):
    text = b"age,sex\n" + b"40.5,f\n" * 400_000
    with open_batches(source(gzip.compress(text)), 1 << 16) as (_, batches):
        assert sum(batch.num_rows for batch in batches) == 400_000


@pytest.mark.parametrize("spoil", [lambda data: data[: len(data) // 2], lambda data: data[:-20] + bytes(20)])
def test_a_compressed_table_that_is_damaged_is_told_in_a_sentence(source, spoil):
    numbers = "\n".join(map(str, np.random.default_rng(0).random(200_000)))
    with pytest.raises(ValueError, match="is cut short or damaged"):
        read(source(spoil(gzip.compress(b"age\n" + numbers.encode()))))


@pytest.mark.parametrize("kind", KINDS)
def test_batches_joined_are_the_table(source, kind):
    with open_batches(source(to_bytes(kind)), 2, {"age": pa.float64(), "sex": pa.string()}) as (_, batches):
        assert pa.Table.from_batches(batches).to_pydict() == TABLE.to_pydict()


def test_the_head_that_was_looked_at_is_read_again(source):
    """A pipe longer than what is looked at loses nothing and repeats nothing."""
    values = np.arange(40_000)
    content = b"number\n" + "\n".join(map(str, values)).encode()
    assert len(content) > 1 << 16
    np.testing.assert_array_equal(read(source(content))["number"].to_numpy(), values)


def test_parquet_batches_hold_the_wanted_columns_only(tmp_path):
    (tmp_path / "a.parquet").write_bytes(to_bytes("parquet"))
    with open_batches(find(str(tmp_path / "a.parquet")), 2, None, ["sex", "no such"]) as (total, batches):
        assert total == 3
        assert all(batch.schema.names == ["sex"] for batch in batches)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"age,sex\n", "a header but no rows"),
        (b"age,sex", "a header but no rows"),
        (b"age,sex\n1,f\n2," + b"m" * 3_000_000 + b"\n", "longer than a million bytes: shorten its cells"),
        (b"age,age\n1,2\n", "several columns named"),
        (b"age,sex\n1,f\n2,m,3\n", "has 3 cells where the header has 2, and begins with 2,m,3"),
        (b"\x89PNG\x00\x00\x00", "no table we can read"),
        (b"PAR1 and then nothing", "cannot be read as parquet"),
    ],
)
def test_a_broken_table_is_refused_with_a_sentence(source, content, sentence):
    with pytest.raises(ValueError, match=sentence):
        read(source(content))


def test_a_file_that_is_not_there_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(ValueError, match="There is no file"):
        find(str(tmp_path / "nothing.csv"))
    with pytest.raises(ValueError, match="is a folder"):
        find(str(tmp_path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of Unix")
def test_a_named_pipe_is_read_once_from_its_beginning(tmp_path):
    """As a shell makes one for `sfboost predict model.sfb <(zcat new.csv.gz)`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(CSV["csv"],))
    writer.start()
    table = read(find(str(pipe)))
    writer.join()
    assert table.to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow file", "arrow stream"])
def test_two_columns_of_one_name_are_refused_batch_by_batch_too(source, kind):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["age", "age"])
    content = b"age,age\n1,2\n" if kind == "csv" else to_bytes(kind, table)
    with (
        pytest.raises(ValueError, match="several columns named"),
        open_batches(source(content), 2, None, ["age"]) as (_, batches),
    ):
        list(batches)
