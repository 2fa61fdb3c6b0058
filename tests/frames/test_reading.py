import gzip
import io
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from sfboost.frames import reading
from sfboost.frames.reading import find, kind_of_bytes, kind_of_name, open_batches, read, sniff

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
    "csv of an old Mac": b"age,sex\r40.5,f\r,\r60.25,m\r",
    "semicolons and decimal commas": b"age;sex\n40,5;f\n?;?\n60,25;m\n",
    "utf-16": "age\tsex\n40.5\tf\n\t\n60.25\tm\n".encode("utf-16"),
    "quoted": b'"age","sex"\n"40.5","f"\n"",""\n"60.25","m"\n',
}
KINDS = [*CSV, "parquet", "arrow file", "arrow stream"]


def piped(content, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    return find("-")


def filed(content, folder, **dialect):
    (folder / "a.csv").write_bytes(content)
    return find(str(folder / "a.csv"), **dialect)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_is_the_same_table(kind, tmp_path, monkeypatch):
    """From a file, a pipe, compressed, and a batch at a time."""
    content, types = to_bytes(kind), {"age": pa.float64(), "sex": pa.string()}
    for text in (content, gzip.compress(content)):
        assert read(filed(text, tmp_path)).to_pydict() == TABLE.to_pydict()
        assert read(piped(text, monkeypatch)).to_pydict() == TABLE.to_pydict()
        with open_batches(piped(text, monkeypatch), 2, types) as batches:
            assert pa.Table.from_batches(batches).to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_first_lines_are_read_as_the_whole_table_is(end, tmp_path, monkeypatch):
    text = end.join(["code,note", '007,"a, b"', f'010,"two{end}lines"', ""]).encode()
    source = filed(text, tmp_path)
    assert source.header == read(source).column_names == ["code", "note"]
    assert source.zero_padded == ("code",)
    monkeypatch.setattr(reading, "_HEAD", len(text) - 8)  # cut within a cell
    assert filed(text, tmp_path).header == ["code", "note"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1", "cp437"])
def test_text_of_every_encoding_is_the_same(encoding, tmp_path):
    source = filed("größe,b\n1,é\n2,x\n".encode(encoding), tmp_path, encoding=encoding)
    assert source.header == ["größe", "b"]
    assert read(source).to_pydict() == {"größe": [1, 2], "b": ["é", "x"]}


def test_a_damaged_compressed_table_is_told_in_a_sentence(tmp_path, monkeypatch):
    numbers = "\n".join(map(str, np.random.default_rng(0).random(70_000)))
    whole = gzip.compress(b"age\n" + numbers.encode())
    for spoilt in (whole[: len(whole) // 2], whole[:-20] + bytes(20), whole[:200] + bytes(50) + whole[250:]):
        with pytest.raises(ValueError, match="is cut short or damaged"):
            read(filed(spoilt, tmp_path))
        with pytest.raises(ValueError, match="is cut short or damaged"):
            read(piped(spoilt, monkeypatch))


def test_the_head_that_was_looked_at_is_read_again(monkeypatch):
    """A pipe longer than what is looked at loses nothing and repeats nothing."""
    values = np.arange(300_000)
    content = b"number\n" + "\n".join(map(str, values)).encode()
    assert len(content) > reading._HEAD
    for text in (content, gzip.compress(content)):
        with open_batches(piped(text, monkeypatch), 1 << 16) as batches:
            np.testing.assert_array_equal(np.concatenate([batch["number"] for batch in batches]), values)


def test_parquet_batches_hold_the_wanted_columns_only(tmp_path):
    (tmp_path / "a.parquet").write_bytes(to_bytes("parquet"))
    with open_batches(find(str(tmp_path / "a.parquet")), 2, None, ["sex", "no such"]) as batches:
        assert [batch.schema.names for batch in batches] == [["sex"], ["sex"]]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"age,sex\n", "a header but no rows"),
        (b"age,sex", "a header but no rows"),
        (b"age,sex\n1,f\n2," + b"m" * 3_000_000 + b"\n", "longer than a million bytes .*: shorten its cells"),
        (
            b'age,sex\n1,"f\n' + b"2,m\n" * 1_000_000,
            "longer than a million bytes .is a quote .* never closed",
        ),
        (b"age,age\n1,2\n", "several columns named"),
        (b"age,sex\n1,f\n2,m,3\n", "has 3 cells where the header has 2, and begins with 2,m,3: mend"),
        (b'"age,sex\n1,f\n', "no rows .is a quote .* never closed"),
        (b'age,sex\n1,"f\n2,m\n3,f\n', "'sex' in .* begins with .* is the quote .* never closed"),
        (b'age,sex\n1,"f\n2,m\n3,"f"\n', "'sex' in .* never closed"),
        (b'age,sex\n1,"f\n2,m', "'sex' in .* never closed"),
        (b'age,sex,b\n1,"f,2\n2,"m",3\n3,f,4\n', "'sex' in .* never closed"),
        (b"age,sex\n1,f\n2,m\0\n", "no table we can read"),
        (b"\x89PNG\x00\x00\x00", "no table we can read"),
        (b"PAR1 and then nothing", "cannot be read as parquet"),
    ],
)
def test_a_broken_table_is_refused_with_a_sentence(content, sentence, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=sentence):
        read(filed(content, tmp_path))
    with pytest.raises(ValueError, match=sentence):
        read(piped(content, monkeypatch))


def test_what_is_not_of_the_encoding_is_refused_whole_and_in_batches(tmp_path):
    for text, named in ((b"age,sex\n1,f\n2,\xe9\n", "utf-8"), (b"age,sex\n1,f\n2,\x81\n", "cp1252")):
        source = filed(text, tmp_path, encoding=named)
        with pytest.raises(ValueError, match=f"is not {named}: name the encoding"):
            read(source)
        with (
            pytest.raises(ValueError, match=f"is not {named}: name the encoding"),
            open_batches(source, 2, {"sex": pa.string()}) as batches,
        ):
            list(batches)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ('id,note\n1,"red, swollen\nsee again, soon"\n', ["red, swollen\nsee again, soon"]),
        ('id,note\n1,"12, High Street\nTown"\n2,"x"\n', ["12, High Street\nTown", "x"]),
        ('note\n"one\ntwo\nthree"\n', ["one\ntwo\nthree"]),
        ('id,note\n1,5" pipe\n2, "y\n', ['5" pipe', ' "y']),  # it begins no cell, so it is a character
        ('id,note\n1,"say ""no"""\n', ['say "no"']),
    ],
)
def test_cells_of_several_lines_and_quotes_within_cells_are_read(text, cells, tmp_path):
    assert read(filed(text.encode(), tmp_path))["note"].to_pylist() == cells


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
def test_two_columns_of_one_name_are_refused_batch_by_batch_too(kind, tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["age", "age"])
    content = b"age,age\n1,2\n" if kind == "csv" else to_bytes(kind, table)
    with (
        pytest.raises(ValueError, match="several columns named"),
        open_batches(filed(content, tmp_path), 2, None, ["age"]) as batches,
    ):
        list(batches)


@pytest.mark.parametrize(
    ("head", "delimiter", "decimal"),
    [
        (b"age,sex\n40.5,f\n", ",", "."),
        (b"age;sex\n40,5;f\n", ";", ","),
        (b"age;sex\n40.5;f\n", ";", "."),
        (b"age\tsex\n40,5\tf\n", "\t", ","),
        (b"age|sex\n1|2\n", "|", "."),
        (b'"a;b",c\n1,2\n', ",", "."),  # a delimiter in quotes is none
        (b"age\n1\n", ",", "."),
        (b"a,b\n1,5\n", ",", "."),  # with commas between columns "1,5" are two cells, whatever they look like
    ],
)
def test_delimiter_and_decimal_point_are_read_off_the_first_lines(head, delimiter, decimal):
    found = sniff(head)
    assert (found.delimiter, found.decimal) == (delimiter, decimal)


def test_what_is_given_is_not_guessed():
    found = sniff(b"age;sex\n40,5;f\n", delimiter=",", decimal=".")
    assert (found.delimiter, found.decimal) == (",", ".")


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("größe,klasse\n1,ä\n".encode(), "utf-8"),
        ("größe,klasse\n1,ä und noch mehr\n".encode("cp1252"), "cp1252"),
        ("größe,klasse\n1,ä\n".encode("utf-16"), "utf-16"),
        (("a" * 60 + "ä").encode()[:-1], "utf-8"),  # a character that is cut in two is no other encoding
    ],
)
def test_the_encoding_is_found(head, encoding):
    assert sniff(head).encoding == encoding


def test_kinds_are_known_by_bytes_when_read_and_by_name_when_written():
    assert [kind_of_bytes(b) for b in (b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff\x10", b"a,b")] == [
        *("parquet", "arrow", "arrow", "csv")
    ]
    assert [kind_of_name(Path(n)) for n in ("a.CSV", "b.pq", "c.feather")] == ["csv", "parquet", "arrow"]
    with pytest.raises(ValueError, match=r"a\.xlsx ends in none of"):
        kind_of_name(Path("a.xlsx"))
