import gzip

import numpy as np
import pytest
from dataset_files import write_idx

from sfboost_lab.datasets.idx import read_idx


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("shape", [(5,), (2, 3, 4)])
def test_what_is_written_is_read(tmp_path, dtype, shape):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    write_idx(tmp_path / "a", array)
    (tmp_path / "a.gz").write_bytes(gzip.compress((tmp_path / "a").read_bytes()))
    for name in ("a", "a.gz"):
        read = read_idx(tmp_path / name)
        assert read.dtype == array.dtype
        np.testing.assert_array_equal(read, array)


def test_the_header_is_that_of_mnist(tmp_path):
    write_idx(tmp_path / "a", np.zeros((2, 28, 28), np.uint8))
    assert (tmp_path / "a").read_bytes()[:16] == bytes.fromhex("00000803 00000002 0000001c 0000001c")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "begins with"),
        (b"PK\x03\x04", "begins with"),
        (b"\0\0\x08\x02\0\0", "ends within its header"),
        (b"\0\0\x08\x01\0\0\0\x05abc", "has 3; get"),
        (b"\0\0\x08\x01\0\0\0\x02abc", "has more; get"),
        (b"\0\0\x0e\x03" + b"\xff" * 12, "has 0; get"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(tmp_path, content, sentence):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        read_idx(tmp_path / "a")
