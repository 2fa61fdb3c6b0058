"""Warnings point at the line of the user's, whichever way it was reached."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import sfboost
from sfboost.heads import SoftLogisticRegression

SOURCE = Path(sfboost.__file__).parent
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 60)
X = np.column_stack([Y + RNG.normal(size=60), RNG.normal(size=60)])


def told(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return {Path(warning.filename) for warning in caught}


def fitted():
    return sfboost.StableFeatureBoosting([0]).fit(X, Y, sample_domain=["a"] * 60)


WAYS = {
    "adapt on arrays": lambda: sfboost.adapt(np.full(60, 0.5), X[:, 1:], settings=sfboost.Settings("paper")),
    "adapt of a model": lambda: fitted().adapt(X[:30], settings=sfboost.Settings("paper")),
    "a column of labels": lambda: SoftLogisticRegression().fit(X, Y[:, None]),
}


def with_gaps(use):
    pandas = pytest.importorskip("pandas", reason="a frame is needed")
    frame = pandas.DataFrame(X, columns=["s", "u"])
    model = sfboost.StableFeatureBoosting(["s"]).fit(frame, Y, sample_domain=["a"] * 60)
    use(model, frame.assign(s=np.nan))


WAYS["predict_proba with gaps"] = lambda: with_gaps(lambda model, rows: model.predict_proba(rows))
# `score` is scikit-learn's, and calls `predict` in the user's name.
WAYS["score with gaps"] = lambda: with_gaps(lambda model, rows: model.score(rows, Y))


@pytest.mark.parametrize("way", WAYS)
def test_the_line_is_the_callers(way):
    assert told(WAYS[way]) == {Path(__file__)}


def test_no_level_is_counted_by_hand_in_the_library():
    rooms = [path for path in SOURCE.rglob("*.py") if "torch" not in set(path.relative_to(SOURCE).parts)]
    counted = [path.name for path in rooms if re.search(r"warnings\.warn\(", path.read_text("utf-8"))]
    assert counted == ["notices.py"]


def test_the_library_prints_nothing():
    """Who wants to know asks `logging`, or the command."""
    rooms = [
        path for path in SOURCE.rglob("*.py") if not {"torch", "cli"} & set(path.relative_to(SOURCE).parts)
    ]
    printing = [path.name for path in rooms if re.search(r"^\s+print\(", path.read_text("utf-8"), re.M)]
    assert printing == []
