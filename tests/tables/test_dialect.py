from pathlib import Path

import pytest

from sfboost.tables.dialect import kind_of_bytes, kind_of_name, sniff


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
        # With commas between columns "1,5" are two cells, whatever they look like.
        (b"a,b\n1,5\n", ",", "."),
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
