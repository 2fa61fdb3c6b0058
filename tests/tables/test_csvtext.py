import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfboost.tables import csvtext
from sfboost.tables.csvtext import CsvText


def text_of(content, encoding="utf-8", delimiter=","):
    return io.BufferedReader(CsvText(io.BytesIO(content), "a.csv", encoding, delimiter), 1 << 16).read()


@pytest.fixture(params=[1, 2, 3, 7, 1 << 20])
def chunk(request, monkeypatch):
    """Bytes that are looked at in one go: what is found must not depend on it."""
    monkeypatch.setattr(csvtext, "_CHUNK", request.param)


@pytest.mark.parametrize(
    "content",
    [
        b'a,b\n1,"x"\n2,"y\nz"\n',
        b'a,b\n1,"x"',
        b'a,b\n"x""y","1"\n"",""\n',
        b'"a","b"\r\n"1" ,"x"\r\n',
        b'a,b\n1,5" pipe\n2, "y\n',  # a quote that does not begin a cell is a character
        b"a,b\n1,2\n",
        b"",
    ],
)
def test_text_whose_quotes_are_closed_passes_unchanged(chunk, content):
    assert text_of(content) == content


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'a,b\n1,"x\n2,y\n3,z\n', r"Line 2 of a\.csv opens a quote"),
        (b'a,b\n1,x\n2,"y', r"Line 3 of a\.csv opens a quote"),
        (b'"a,b\n1,x\n', r"Line 1 of a\.csv opens a quote"),
        (b'a,b\n1,"x\n2,y\n3,"z\n', r"in line 2 of a\.csv goes on after its closing quote"),
        (b'a,b\n1,"x"y\n', r"in line 2 of a\.csv goes on"),
        (b'a,b\n1,"5" pipe"\n', r"in line 2 of a\.csv goes on"),
        (b"a,b\n1,x\0\n", r"Line 2 of a\.csv holds a NUL"),
        (b"a,b\n1,x\n2,\xe9\n3,z\n", r"Line 3 of a\.csv is not utf-8"),
        (b"a,b\n1,x\n2,\xc3", r"Line 3 of a\.csv is not utf-8"),
    ],
)
def test_what_arrow_would_pass_over_is_refused_with_its_line(chunk, content, sentence):
    with pytest.raises(ValueError, match=sentence):
        text_of(content)


def test_a_quote_that_is_open_for_too_long_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(csvtext, "_CHUNK", 64)
    monkeypatch.setattr(csvtext, "_LONGEST_CELL", 256)
    endless = io.BytesIO(b'a,b\n1,"x\n' + b"2,y\n" * 10_000)
    with pytest.raises(ValueError, match=r"Line 2 .* never closed"):
        CsvText(endless, "a.csv", "utf-8", ",").read()
    assert endless.tell() < 1000


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1", "cp437"])
def test_every_encoding_comes_out_as_utf_8_without_a_mark(chunk, encoding):
    text = "größe,b\n1,é\n"
    assert text_of(text.encode(encoding), encoding) == text.encode()


@given(
    st.lists(st.lists(st.text(alphabet='ab",;\n\r |é', max_size=6), min_size=2, max_size=3), max_size=6),
    st.sampled_from(",;|"),
)
def test_what_a_writer_of_csv_writes_is_right(rows, delimiter):
    sink = io.StringIO()
    csv.writer(sink, delimiter=delimiter).writerows(rows)
    assert text_of(sink.getvalue().encode(), delimiter=delimiter).decode() == sink.getvalue()
