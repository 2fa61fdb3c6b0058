"""`sfboost export` and `--card`: files for other tools."""

import json

import pytest


def test_json_names_the_encoded_columns_and_the_classes(files, sfboost, tmp_path):
    told = sfboost.json("export", files.adapted, "-o", tmp_path / "m.json")
    kept = json.loads((tmp_path / "m.json").read_text())
    assert kept["features"] == told["features"]
    assert kept["classes"] == ["no", "yes"]
    assert {recipe["name"] for recipe in kept["encoding"]} == {"age", "sex", "chol", "heart_rate", "ward"}


def test_an_onnx_file_says_what_predict_says(files, sfboost, tmp_path):
    pytest.importorskip("onnx", reason="ONNX graphs: pip install 'sfboost[onnx]'")
    runtime = pytest.importorskip("onnxruntime", reason="says what an ONNX graph says")
    import numpy as np
    import pandas as pd

    import sfboost as library
    from sfboost.export import linear_scorer

    sfboost("export", files.adapted, "-o", tmp_path / "m.onnx")
    sfboost("predict", files.adapted, files.new, "-o", tmp_path / "p.csv")
    rows = linear_scorer(library.load(files.adapted)).matrix(pd.read_csv(files.new))
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    label, proba = session.run(["label", "probabilities"], {"X": rows})
    expected = pd.read_csv(tmp_path / "p.csv")
    assert label.tolist() == expected["prediction"].tolist()
    np.testing.assert_allclose(proba, expected[["answer_no", "answer_yes"]], atol=1e-6)


def test_an_unknown_ending_is_refused_before_anything_is_read(sfboost, tmp_path):
    done = sfboost("export", tmp_path / "absent.sfb", "-o", tmp_path / "m.txt", code=2)
    assert ".onnx or .json" in done.stderr


def test_the_card_is_written_beside_the_report(files, sfboost, tmp_path):
    told = sfboost.json(
        "adapt", files.model, files.labelled, "-o", tmp_path / "a.sfb", "--card", tmp_path / "card.md"
    )
    assert told["files"]["card"] == str(tmp_path / "card.md")
    assert "labelled.csv as a new domain" in (tmp_path / "card.md").read_text(encoding="utf-8")
