"""`sfboost info` and `python -m sfboost`."""

import subprocess
import sys

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import sfboost as library


def test_a_fitted_model_says_its_columns_domains_and_roles(files, sfboost):
    told = sfboost.json("info", files.model)
    assert told["kind"] == "StableFeatureBoosting"
    assert told["source_domains"] == {"north": 400, "south": 400, "east": 400}
    assert told["stable_features"] == ["age", "sex", "chol"]
    assert told["unstable_features"] == ["heart_rate", "ward"]
    assert told["target"] == "sick"
    assert told["adapted"] is False
    assert told["stable_classifier"] == "LogisticRegression"  # not the pipeline that it is in
    assert told["written_by"]["sfboost"] == library.__version__


def test_an_adapted_model_says_what_was_decided(files, sfboost):
    told, adapted = sfboost.json("info", files.adapted), library.load(files.adapted)
    assert told["decision"] == adapted.decision_
    assert told["reason"] == str(adapted.reason_)
    assert told["adapted"].startswith("to 800 rows")
    words = sfboost("info", files.adapted).stdout
    assert "stable features: age" in words
    assert "class shares: no 0." in words


def test_a_file_that_cannot_be_loaded_still_says_what_wrote_it(sfboost, tmp_path):
    y = np.tile([0, 1], 30)
    forest = RandomForestClassifier(2, random_state=0)
    model = library.StableFeatureBoosting([0], stable=forest).fit(np.c_[y, y], y, sample_domain=["a"] * 60)
    model.save(tmp_path / "forest.sfb", trusted=["sklearn.tree._tree.Tree"])
    done = sfboost("info", tmp_path / "forest.sfb")
    assert "scikit-learn" in done.stdout
    assert "stable features" not in done.stdout
    assert "trusted" in done.stderr
    told = sfboost.json("info", tmp_path / "forest.sfb", "--trusted", "sklearn.tree._tree.Tree")
    assert told["stable_classifier"] == "RandomForestClassifier"


def test_a_table_is_no_model(files, sfboost):
    done = sfboost("info", files.train, code=2)
    assert "does not begin like a saved model" in done.stderr


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "sfboost", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"sfboost {library.__version__}"
