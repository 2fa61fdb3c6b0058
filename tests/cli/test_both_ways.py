"""What the command saves Python reads, and the other way round: the encoder is in the model."""

import numpy as np
import pandas as pd
import pytest
from hospitals import training

import sfboost as library
from sfboost import StableFeatureBoosting

pytestmark = pytest.mark.filterwarnings("ignore::sfboost.frames.EncodingWarning")
STABLE, UNSTABLE = ["age", "sex", "chol"], ["heart_rate", "ward"]


def in_python(**options):
    rows = training()
    model = StableFeatureBoosting(STABLE, UNSTABLE, **options)
    return model.fit(rows, rows["sick"], sample_domain=rows["hospital"])


def probabilities(path):
    return pd.read_csv(path)[["answer_no", "answer_yes"]].to_numpy()


def test_python_predicts_raw_rows_with_a_file_of_the_command_as_the_command_does(files, sfboost, tmp_path):
    new = pd.read_csv(files.new)
    for file in (files.adapted, files.model):
        sfboost("predict", file, files.new, "-o", tmp_path / "p.csv")
        loaded = library.load(file)
        np.testing.assert_allclose(
            loaded.predict_proba(new[new.columns[::-1]]), probabilities(tmp_path / "p.csv"), rtol=1e-12
        )


def test_the_command_adapts_predicts_and_explains_with_a_file_of_python(files, sfboost, tmp_path):
    model, new = in_python(), pd.read_csv(files.new)
    model.save(tmp_path / "m.sfb")
    done = sfboost.json(
        "adapt", tmp_path / "m.sfb", files.new, "-o", tmp_path / "a.sfb", "--report", tmp_path / "r.html"
    )
    assert done["decision"] == model.adapt(new).decision_
    assert "heart_rate" in (tmp_path / "r.html").read_text()
    sfboost("predict", tmp_path / "a.sfb", files.new, "-o", tmp_path / "p.csv")
    np.testing.assert_allclose(
        library.load(tmp_path / "a.sfb").predict_proba(new), probabilities(tmp_path / "p.csv"), rtol=1e-12
    )
    assert "heart_rate" in sfboost("explain", tmp_path / "a.sfb", files.new, "--row", 3).stdout


def test_a_model_of_an_array_is_refused_with_the_way_out(files, sfboost, tmp_path):
    rows = training()
    model = StableFeatureBoosting([0]).fit(
        rows[["age", "heart_rate"]].to_numpy(), rows["sick"], rows["hospital"]
    )
    model.save(tmp_path / "m.sfb")
    done = sfboost("predict", tmp_path / "m.sfb", files.new, "-o", tmp_path / "p.csv", code=2)
    assert "fitted in Python to an array" in done.stderr
