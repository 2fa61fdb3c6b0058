"""Heart disease, Amazon reviews and wine, on tiny files in their real formats."""

import numpy as np
import pytest
from scipy.io import savemat

from sfboost.frames import EncodingWarning
from sfboost_lab.datasets import load

pytestmark = pytest.mark.usefixtures("no_data")


@pytest.fixture
def hospitals(tmp_path):
    folder = tmp_path / "tables/heart_disease"
    folder.mkdir(parents=True)
    (folder / "processed.cleveland.data").write_text(
        "63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0\n"
        "67.0,1.0,4.0,160.0,286.0,0.0,2.0,108.0,1.0,1.5,2.0,3.0,3.0,2\n"
        "67.0,0.0,4.0,120.0,229.0,0.0,0.0,129.0,1.0,2.6,2.0,?,7.0,1\n"
    )
    (folder / "processed.hungarian.data").write_text(
        "28,1,2,130,132,0,2,185,0,0,?,?,?,0\n29,1,2,140,?,0,0,170,0,0,?,?,?,1\n"
    )
    (folder / "processed.switzerland.data").write_text("32,1,1,95,0,?,0,127,0,.7,1,?,?,1\n")
    (folder / "processed.va.data").write_text(
        "63,1,4,140,260,0,1,112,1,3,2,?,?,2\n44,1,4,0,209,0,1,127,0,0,?,?,?,0\n"
    )
    return tmp_path


class TestHeartDisease:
    @pytest.fixture(autouse=True)
    def _pandas(self):
        pytest.importorskip("pandas", reason="tables need pandas: pip install 'sfboost[app]'")

    def test_hospitals_are_domains_and_sick_is_num_above_zero(self, hospitals):
        heart = load("heart_disease", data_dir=hospitals)
        assert {d.name: d.y.tolist() for d in heart.domains} == {
            "cleveland": [0, 1, 1],
            "hungary": [0, 1],
            "switzerland": [1],
            "va": [1, 0],
        }
        assert heart.test == ("va",)
        assert heart.domain("va").X.shape == (2, 13)

    def test_one_and_one_point_zero_are_the_same_code(self, hospitals):
        heart = load("heart_disease", data_dir=hospitals)
        assert heart.domain("cleveland").X["sex"].tolist() == ["1", "1", "0"]
        assert heart.domain("hungary").X["sex"].tolist() == ["1", "1"]

    def test_a_cholesterol_of_zero_is_missing(self, hospitals):
        heart = load("heart_disease", data_dir=hospitals)
        assert heart.domain("switzerland").X["chol"].isna().all()
        assert heart.domain("va").X["trestbps"].isna().tolist() == [False, True]

    def test_encoded_it_is_all_numbers_with_known_positions(self, hospitals):
        with pytest.warns(EncodingWarning):
            heart = load("heart_disease", data_dir=hospitals, encoded=True, stable_features=["age", "sex"])
        names = [heart.feature_names[k] for k in heart.stable_features]
        assert [name.partition("=")[0] for name in names] == ["age", "sex"]
        assert all(np.isfinite(d.X).all() for d in heart.domains)

    def test_a_wrong_file_is_named(self, hospitals):
        (hospitals / "tables/heart_disease/processed.va.data").write_text("1,2,3\n")
        with pytest.raises(ValueError, match=r"processed\.va\.data has 3 columns"):
            load("heart_disease", data_dir=hospitals)


@pytest.fixture
def reviews(tmp_path):
    folder = tmp_path / "tables/amazon_review_400"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in ("books", "dvd", "elec", "kitchen"):
        words = rng.integers(0, 3, (6, 400)).astype(float)
        labels = np.array([[0], [1]] * 3, dtype=np.uint8)
        savemat(folder / f"{name}_400.mat", {"fts": words, "labels": labels})
    return tmp_path


def test_reviews_are_read_from_mat_files(reviews):
    made = load("amazon_reviews", data_dir=reviews, test="dvd")
    assert made.train == ("books", "elec", "kitchen")
    assert made.domain("dvd").X.shape == (6, 400)
    assert made.domain("dvd").y.tolist() == [0, 1] * 3


@pytest.mark.parametrize("content", [b"", b"these are words", {"fts": np.zeros((2, 3))}])
def test_a_wrong_mat_file_is_named(reviews, content):
    path = reviews / "tables/amazon_review_400/elec_400.mat"
    if isinstance(content, dict):
        savemat(path, content)
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"elec_400\.mat is no MATLAB 5 file"):
        load("amazon_reviews", data_dir=reviews)


def test_labels_other_than_zero_and_one_are_refused(reviews):
    path = reviews / "tables/amazon_review_400/elec_400.mat"
    savemat(path, {"fts": np.zeros((2, 3)), "labels": np.array([[1], [2]])})
    with pytest.raises(ValueError, match="need to be 0 or 1"):
        load("amazon_reviews", data_dir=reviews)


def test_wine_is_read_with_and_without_a_header_line(tmp_path):
    folder = tmp_path / "tables/wine_quality"
    folder.mkdir(parents=True)
    numbers = [7.4, 0.7, 0, 1.9, 0.076, 11, 34, 0.9978, 3.51, 0.56, 9.4]
    (folder / "winequality-red.csv").write_text(",".join(map(str, [*numbers, 5])) + "\n")
    header = ";".join(f'"column {k}"' for k in range(12))
    (folder / "winequality-white.csv").write_text(header + "\n" + ";".join(map(str, [*numbers, 6])) + "\n")
    wine = load("wine_quality", data_dir=tmp_path)
    np.testing.assert_array_equal(wine.domain("red").X, [numbers])
    np.testing.assert_array_equal(wine.domain("white").X, [numbers])
    assert (wine.domain("red").y.tolist(), wine.domain("white").y.tolist()) == ([0], [1])
    (folder / "winequality-red.csv").write_text("1,2\n")
    with pytest.raises(ValueError, match="has 2 columns"):
        load("wine_quality", data_dir=tmp_path)
