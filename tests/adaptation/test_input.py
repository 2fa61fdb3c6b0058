"""Each mistake gets its own sentence; nothing that is passed in is written to."""

import numpy as np
import pytest
from joints import GaussianFamily, draw_anticausal
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sfboost import Settings
from sfboost.adaptation import adapt
from sfboost.adaptation.standardize import Standardizer

X, Y = draw_anticausal(400, 0.1, seed=0)
STABLE, UNSTABLE = np.where(X[:, 0] > 0, 0.75, 0.25), X[:, 1:]


def with_value(value):
    bad = UNSTABLE.copy()
    bad[3] = value
    return bad


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"X_unstable": with_value(np.nan)}, "X_unstable contains NaN or infinity"),
        ({"X_unstable": with_value(np.inf)}, "X_unstable contains NaN or infinity"),
        ({"X_unstable": UNSTABLE[:-1]}, "399 rows but stable_proba has 400"),
        ({"X_unstable": UNSTABLE[:, :, None]}, r"shape \(n, d\)"),
        ({"X_unstable": None}, r"shape \(n, d\)"),
        ({"X_unstable": UNSTABLE[:, :0]}, "no columns"),
        ({"X_unstable": UNSTABLE.astype(str)}, "must be numbers"),
        ({"X_unstable": np.array([["a"]] * 400, dtype=object)}, "encode text columns"),
        ({"stable_proba": np.full(400, np.nan)}, "stable_proba has NaN"),
        ({"stable_proba": STABLE * 4}, "outside"),
        ({"stable_proba": STABLE[:1], "X_unstable": UNSTABLE[:1]}, "One row cannot tell"),
        ({"stable_proba": STABLE[:0], "X_unstable": UNSTABLE[:0]}, "no rows"),
        ({"classes": ["a"]}, "1 entries but stable_proba has 2 columns"),
        ({"classes": ["a", "a"]}, "distinct"),
        ({"sample_weight": np.ones(3)}, "one per row"),
        ({"sample_weight": -np.ones(400)}, "not negative"),
        ({"y": [0, 1]}, "there are 400 rows"),
        ({"settings": Settings(method="magic")}, "use one of"),
        ({"settings": Settings(correction="magic")}, "correction='magic' is not known"),
        ({"settings": Settings(pseudo_labels="magic")}, "pseudo_labels='magic' is not known"),
        ({"settings": Settings(rounds=0)}, "whole number from 1 on"),
        ({"settings": Settings(rounds=3.5)}, "whole number from 1 on"),
        ({"settings": Settings(rounds=1)}, "post-hoc correction alone"),
        ({"settings": Settings(l2=None)}, "positive number"),
        ({"settings": Settings(l2=1.0, head=LogisticRegression())}, "default head only"),
        ({"settings": Settings(head=LinearSVC())}, "LinearSVC has no predict_proba"),
        ({"settings": Settings(calibrate_unstable=True)}, "calibrate_unstable goes with"),
        ({"settings": Settings(l2=0.0)}, "positive number"),
        ({"settings": Settings(l2="strong")}, "positive number"),
        ({"settings": Settings(standardize="yes")}, "standardize='yes' is not known"),
        ({"settings": Settings(pseudo_labels="hard")}, 'go with "posthoc"'),
    ],
)
def test_bad_input_gets_its_own_sentence(change, sentence):
    arguments = {"stable_proba": STABLE, "X_unstable": UNSTABLE} | change
    with pytest.raises(ValueError, match=sentence):
        adapt(arguments.pop("stable_proba"), arguments.pop("X_unstable"), **arguments)


@pytest.mark.parametrize(
    ("stable", "unstable", "sentence"),
    [
        (STABLE, np.tile(UNSTABLE, 2), "2 features but the adaptation was made with 1"),
        (STABLE[:3], UNSTABLE, "400 rows but stable_proba has 3"),
        (np.full((400, 3), 1 / 3), UNSTABLE, "3 columns but 2 classes"),
    ],
)
def test_bad_input_at_prediction(stable, unstable, sentence):
    with pytest.raises(ValueError, match=sentence):
        adapt(STABLE, UNSTABLE).predict_proba(stable, unstable)


def test_nothing_is_written_to():
    stable, unstable, weight = STABLE.copy(), UNSTABLE.copy(), np.ones(400)
    y = np.where(np.arange(400) < 20, Y, -1)
    arrays = (stable, unstable, weight, y)
    before = [array.tobytes() for array in arrays]
    for array in arrays:
        array.setflags(write=False)
    for correction in ("likelihood", "posthoc", "none"):
        for rounds in (2, 3):
            adapted = adapt(
                stable,
                unstable,
                y=y,
                sample_weight=weight,
                settings=Settings(correction=correction, rounds=rounds),
            )
            adapted.predict_proba(stable, unstable)
    assert [array.tobytes() for array in arrays] == before


def test_the_global_random_state_is_not_touched():
    before = repr(np.random.get_state())
    adapt(STABLE, UNSTABLE, settings=Settings(correction="posthoc", pseudo_labels="sampled"))
    assert repr(np.random.get_state()) == before


def test_the_same_call_gives_the_same_bytes():
    first, second = (adapt(STABLE, UNSTABLE).predict_proba(STABLE, UNSTABLE).tobytes() for _ in range(2))
    assert first == second


def test_sparse_features():
    _, stable, dense = GaussianFamily(0, n_classes=3).draw(500)
    dense[np.abs(dense) < 1] = 0
    thin = sparse.csr_matrix(dense)
    adaptation = adapt(stable, thin, settings=Settings(l2=1e-3), refuse=False)
    proba = adaptation.predict_proba(stable, thin)
    scaled = dense / dense.std(axis=0)
    same = adapt(stable, scaled, settings=Settings(l2=1e-3, standardize=False), refuse=False)
    np.testing.assert_allclose(proba, same.predict_proba(stable, scaled), atol=1e-3)
    thin.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        adapt(stable, thin)


def test_a_vector_is_one_feature():
    expected = adapt(STABLE, UNSTABLE).predict_proba(STABLE, UNSTABLE)
    np.testing.assert_allclose(
        adapt(STABLE, UNSTABLE[:, 0]).predict_proba(STABLE, UNSTABLE[:, 0]), expected, rtol=1e-9
    )
    wrapped = adapt(STABLE, UNSTABLE[:, 0], settings=Settings(head=LogisticRegression()))
    assert wrapped.predict_proba(STABLE.tolist(), UNSTABLE[:, 0].tolist()).shape == (400, 2)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_scale_of_the_weights_does_not_matter(scale):
    weight = np.random.default_rng(0).random(400)
    weight[:50] = 0
    expected = adapt(STABLE[50:], UNSTABLE[50:], sample_weight=weight[50:])
    scaled = adapt(STABLE, UNSTABLE, sample_weight=weight * scale)
    np.testing.assert_allclose(
        scaled.predict_proba(STABLE, UNSTABLE), expected.predict_proba(STABLE, UNSTABLE), atol=1e-6
    )
    assert scaled.decision.reason == expected.decision.reason
    paper = adapt(STABLE, UNSTABLE, sample_weight=weight * scale, settings=Settings("paper"))
    assert np.isfinite(paper.predict_proba(STABLE, UNSTABLE)).all()


class TestStandardizer:
    def test_constant_columns_and_huge_means(self):
        rng = np.random.default_rng(0)
        columns = np.column_stack([np.full(1000, 7.3), 1e9 + rng.normal(size=1000)])
        standard = Standardizer.fit(columns, np.ones(1000)).apply(columns)
        np.testing.assert_allclose(standard[:, 0], 0, atol=1e-9)
        assert standard[:, 1].std() == pytest.approx(1, rel=1e-3)
