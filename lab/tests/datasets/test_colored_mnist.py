import numpy as np
import pytest
from dataset_files import write_idx

from sfboost_lab.datasets import load
from sfboost_lab.datasets.idx import read_idx
from sfboost_lab.datasets.sources import MissingDataError

pytestmark = pytest.mark.usefixtures("no_data")


def test_the_roles_are_those_of_the_reference_code(mnist_dir):
    made = load("colored_mnist", data_dir=mnist_dir)
    assert made.train == ("train-0.9", "train-0.8")
    assert made.validate == ("validate-0.9", "validate-0.8")
    assert made.oracle == ("oracle-0.5", "oracle-0.1")
    assert [made.domain(name).agreement for name in made.test] == [k / 10 for k in range(10, -1, -1)]
    assert {
        name: len(made.domain(name)) for name in ("train-0.9", "validate-0.8", "oracle-0.1", "test-0.0")
    } == {
        "train-0.9": 50,
        "validate-0.8": 20,
        "oracle-0.1": 20,
        "test-0.0": 40,
    }


@pytest.mark.parametrize(("size", "step"), [(14, 2), (28, 1)])
def test_pixels_are_every_second_one_over_255(mnist_dir, size, step):
    made = load("colored_mnist", data_dir=mnist_dir, size=size).domain("test-0.5")
    raw = read_idx(mnist_dir / "mnist/t10k-images-idx3-ubyte.gz")
    assert made.X.shape == (40, 2, size, size)
    np.testing.assert_array_equal(made.X.sum(axis=1), raw[:, ::step, ::step].astype(np.float32) / 255)


def test_training_images_are_permuted_by_the_seed_and_dealt_alternately(mnist_dir):
    raw = read_idx(mnist_dir / "mnist/train-images-idx3-ubyte")[:, ::2, ::2].astype(np.float32) / 255
    made = load("colored_mnist", data_dir=mnist_dir, random_state=3)
    order = np.random.default_rng(3).permutation(120)
    for name, rows in [
        ("train-0.9", order[:100:2]),
        ("train-0.8", order[1:100:2]),
        ("oracle-0.1", order[100:]),
    ]:
        np.testing.assert_array_equal(made.domain(name).X.sum(axis=1), raw[rows])


def test_the_grey_oracle_of_the_papers_has_two_domains_of_one_agreement(mnist_dir):
    made = load("colored_mnist", data_dir=mnist_dir, agreements=(0.5, 0.5))
    assert made.train == ("train-0.5", "train-0.5-2")
    first, second = (made.domain(name) for name in made.train)
    assert not np.array_equal(first.X.sum(axis=1), second.X.sum(axis=1))


def test_noise_and_colors_have_their_own_seed(mnist_dir):
    same = [load("colored_mnist", data_dir=mnist_dir, random_state=0, color_state=c) for c in (1, 1, 2)]
    first, again, other = (made.domain("train-0.9") for made in same)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.X.sum(axis=1), other.X.sum(axis=1))
    assert (first.y != other.y).any()


def test_without_noise_and_with_full_agreement_all_is_determined(mnist_dir):
    made = load("colored_mnist", data_dir=mnist_dir, label_noise=0.0).domain("test-1.0")
    np.testing.assert_array_equal(made.y, np.arange(40) % 10 < 5)
    np.testing.assert_array_equal(made.X.sum(axis=(2, 3)).argmax(axis=1), made.y)


def test_the_table_has_a_column_per_grey_pixel_and_color(mnist_dir):
    made = load("colored_mnist", data_dir=mnist_dir, view="table")
    assert made.domain("train-0.9").X.shape == (50, 198)
    assert made.unstable_features == [196, 197]


def test_wrong_options_and_files_are_answered_by_a_sentence(mnist_dir, tmp_path):
    with pytest.raises(ValueError, match="comes in 14 and 28"):
        load("colored_mnist", data_dir=mnist_dir, size=20)
    for part in ("train", "t10k"):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte", np.zeros((3, 9, 9), np.uint8))
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte", np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="28x28 images"):
        load("colored_mnist", data_dir=tmp_path)


def test_without_files_or_mirrors_the_sentence_names_the_file(monkeypatch, tmp_path):
    from sfboost_lab.datasets import colored_mnist

    offline = tuple(type(f)(f.path, f.sha256, f.size) for f in colored_mnist.FILES)
    monkeypatch.setattr(colored_mnist, "FILES", offline)
    with pytest.raises(MissingDataError, match=r"mnist/train-images-idx3-ubyte"):
        load("colored_mnist", data_dir=tmp_path)
