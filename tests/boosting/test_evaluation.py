import numpy as np
import pytest
from joints import draw_anticausal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, log_loss, roc_auc_score

from sfboost import StableFeatureBoosting, adapted_scorer
from sfboost.boosting import METRICS, score_predictions


def wards(agreements=(0.9, 0.8, 0.1), n=1500):
    parts = [draw_anticausal(n, agreement, i) for i, agreement in enumerate(agreements)]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return X, y, np.repeat([f"agreement {a}" for a in agreements], n)


def test_each_domain_plays_the_new_one():
    X, y, domain = wards()
    result = StableFeatureBoosting([0], [1]).evaluate(X, y, domain)
    flipped = {d.domain: d.scores for d in result.domains}["agreement 0.1"]
    assert flipped["stable"]["accuracy"] == pytest.approx(0.75, abs=0.04)
    assert flipped["adapted"]["accuracy"] == pytest.approx(0.90, abs=0.03)
    assert flipped["labelled"]["accuracy"] == pytest.approx(0.90, abs=0.03)
    assert flipped["pooled"]["accuracy"] < 0.2
    assert set(flipped["adapted"]) == set(METRICS)
    assert result.gain > 0.08
    assert [d.decision for d in result.domains] == ["adapted"] * 3


def test_it_prints_and_exports():
    X, y, domain = wards(n=400)
    result = StableFeatureBoosting([0], [1]).evaluate(X, y, domain)
    text = str(result)
    assert "agreement 0.1" in text
    assert text.splitlines()[-1].startswith("mean")
    assert len(result.rows()) == 12
    pytest.importorskip("pandas", reason="the [app] extra brings pandas")
    assert result.to_frame().shape == (12, 4 + len(METRICS))


def test_labels_of_the_new_domain_do_not_reach_the_adapted_prediction():
    """Permuting one domain's labels changes its scores but not the decision or the label-free part."""
    X, y, domain = wards(n=400)
    permuted = y.copy()
    rows = np.flatnonzero(domain == "agreement 0.1")
    permuted[rows] = np.random.default_rng(0).permutation(permuted[rows])
    probas = []
    for labels in (y, permuted):
        rest = domain != "agreement 0.1"
        model = StableFeatureBoosting([0], [1]).fit(X[rest], labels[rest], sample_domain=domain[rest])
        probas.append(model.adapt(X[rows]).predict_proba(X[rows]).tobytes())
    assert probas[0] == probas[1]


def test_text_labels_weights_and_a_prefit_classifier():
    X, y, domain = wards(n=400)
    names = np.where(y == 1, "well", "ill")
    frozen = FrozenEstimator(LogisticRegression().fit(X[:, :1], names))
    model = StableFeatureBoosting([0], [1], stable=frozen)
    result = model.evaluate(X, names, domain, sample_weight=np.ones(len(y)))
    assert result.mean("stable") == pytest.approx(0.75, abs=0.05)
    own = StableFeatureBoosting([0], [1], stable=LogisticRegression()).evaluate(X.tolist(), names, domain)
    assert own.mean("pooled", "log_loss") > own.mean("adapted", "log_loss")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sample_domain": np.zeros(1200)}, "at least two domains"),
        ({"sample_domain": np.zeros(3)}, "one label and one domain per row"),
        ({"y": np.repeat([0, 1, 2], 400)}, "which no other domain has"),
    ],
)
def test_bad_input(change, sentence):
    X, y, domain = wards(n=400)
    with pytest.raises(ValueError, match=sentence):
        StableFeatureBoosting([0], [1]).evaluate(**({"X": X, "y": y, "sample_domain": domain} | change))


def test_scores_equal_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    p = np.clip(0.3 * y + 0.7 * rng.random(300), 0.01, 0.99)
    scores = score_predictions(y, np.column_stack([1 - p, p]))
    assert scores["log_loss"] == pytest.approx(log_loss(y, p))
    assert scores["brier"] == pytest.approx(brier_score_loss(y, p))
    assert scores["auroc"] == pytest.approx(roc_auc_score(y, p))
    assert scores["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, p > 0.5))


def test_scores_of_several_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    proba = rng.dirichlet(np.ones(3), size=300)
    scores = score_predictions(y, proba)
    assert scores["auroc"] == pytest.approx(roc_auc_score(y, proba, multi_class="ovr"))
    assert scores["log_loss"] == pytest.approx(log_loss(y, proba))
    assert np.isnan(score_predictions(np.zeros(300, dtype=int), proba)["auroc"])


def test_the_scorer_adapts_to_each_domain_and_negates_losses():
    X, y, domain = wards(n=800)
    rest = domain == "agreement 0.9"
    model = StableFeatureBoosting([0], [1]).fit(X[rest], y[rest])
    mixed = adapted_scorer("accuracy")(model, X[~rest], y[~rest])
    apart = adapted_scorer("accuracy")(model, X[~rest], y[~rest], sample_domain=domain[~rest])
    assert apart == pytest.approx(0.85, abs=0.03)  # 0.8 and 0.9, each by its own head
    assert mixed < apart - 0.05
    assert adapted_scorer("log_loss")(model, X[~rest], y[~rest]) < 0
    with pytest.raises(ValueError, match="metric='luck' is not known"):
        adapted_scorer("luck")
