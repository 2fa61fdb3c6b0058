"""`sfboost features`: pictures in, a table out."""

import numpy as np
import pytest

pytest.importorskip("typer", reason="the [app] extra brings the command")
Image = pytest.importorskip("PIL.Image")
pq = pytest.importorskip("pyarrow.parquet")

from typer.testing import CliRunner  # noqa: E402

from sfboost.cli.app import app  # noqa: E402
from sfboost.datasets.features import N_FEATURES, EfficientNetFeatures  # noqa: E402


@pytest.fixture
def network(monkeypatch):
    """In place of the trained one: the mean of each colour, in the first of its features."""

    def mean_colour(self, batch):
        made = np.zeros((len(batch), N_FEATURES), np.float32)
        made[:, :3] = batch.mean(axis=(2, 3)) / 255
        return made

    monkeypatch.setattr(EfficientNetFeatures, "__call__", mean_colour)
    monkeypatch.setattr(EfficientNetFeatures, "identity", "mean colours")


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.setenv("SFBOOST_CACHE", str(tmp_path / "cache"))
    for place, colour in (("day/cat", (255, 0, 0)), ("day/dog", (0, 255, 0)), ("night/cat", (51, 0, 0))):
        folder = tmp_path / "photos" / place
        folder.mkdir(parents=True)
        Image.new("RGB", (9, 12), colour).save(folder / "1.png")
    return tmp_path / "photos"


def features(*words):
    return CliRunner().invoke(app, ["features", *map(str, words)])


def test_every_picture_is_a_row(photos, network, tmp_path):
    out = tmp_path / "photos.parquet"
    result = features(photos, "-o", out, "--size", 8)
    assert result.exit_code == 0, result.output
    table = pq.read_table(out).to_pydict()
    assert table["domain"] == ["day", "day", "night"]
    assert table["label"] == ["cat", "dog", "cat"]
    assert table["file"] == ["day/cat/1.png", "day/dog/1.png", "night/cat/1.png"]
    np.testing.assert_allclose([table["f0"], table["f1"]], [[1, 0, 0.2], [0, 1, 0]], atol=1e-6)


def test_pictures_without_a_class_are_one_new_domain(photos, network, tmp_path):
    out = tmp_path / "new.parquet"
    assert features(photos / "day" / "cat", "-o", out, "--size", 8).exit_code == 0
    table = pq.read_table(out).to_pydict()
    assert (table["domain"], table["file"]) == (["cat"], ["1.png"])
    assert "label" not in table


def test_only_parquet_is_written(photos):
    result = features(photos, "-o", "a.csv")
    assert result.exit_code != 0
    assert "Parquet" in result.output
