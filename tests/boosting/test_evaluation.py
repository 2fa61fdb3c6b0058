import numpy as np
import pytest
from joints import draw_anticausal
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, log_loss, roc_auc_score

from sfboost import Settings, StableFeatureBoosting, adapted_scorer
from sfboost.boosting import METRICS, evaluation, score_predictions
from sfboost.boosting.scored_domains import COMPARED

MODEL = StableFeatureBoosting([0], [1], learner=None)


def wards(agreements=(0.9, 0.8, 0.1), n=1500):
    parts = [draw_anticausal(n, agreement, i) for i, agreement in enumerate(agreements)]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return X, y, np.repeat([f"agreement {a}" for a in agreements], n)


def test_each_domain_plays_the_new_one():
    X, y, domain = wards()
    result = MODEL.evaluate(X, y, domain, answer="safe")
    flipped = {d.domain: d.scores for d in result.domains}["agreement 0.1"]
    assert flipped["stable"]["accuracy"] == pytest.approx(0.75, abs=0.04)
    assert flipped["answer"]["accuracy"] == pytest.approx(0.90, abs=0.03)
    assert flipped["labelled"]["accuracy"] == pytest.approx(0.90, abs=0.03)
    assert flipped["pooled"]["accuracy"] < 0.2
    assert set(flipped["answer"]) == set(METRICS)
    assert result.gain > 0.08


@pytest.fixture(scope="module")
def best():
    return MODEL.evaluate(*wards(n=400))


def test_it_prints_and_exports(best):
    text = str(best)
    assert "agreement 0.1" in text
    assert text.splitlines()[-1].startswith("mean")
    assert len(best.rows()) == 12
    pytest.importorskip("pandas", reason="the [app] extra brings pandas")
    assert best.to_frame().shape == (12, 9 + len(METRICS))


def test_the_regret_is_what_the_best_candidate_has_beyond_the_answer(best):
    safe = MODEL.evaluate(*wards(n=400), answer="safe")
    for d in best.domains:
        assert {"stable", "pooled", "boosted"} <= set(d.candidates)
        for method in ("stable", "pooled"):
            assert d.candidates[method] == d.scores[method]["accuracy"]
        assert d.candidates[d.best] == max(d.candidates.values())
        assert d.regret == max(d.candidates.values()) - d.scores["answer"]["accuracy"]
        assert 0.0 < d.p_value < 1.0
    assert best.regret == pytest.approx(np.mean([d.regret for d in best.domains]))
    # The others (0.9 and 0.8) did not expect a colour that says the opposite, and those who saw one do.
    assert {d.domain: d.p_value < 0.01 for d in best.domains}["agreement 0.1"]
    for d, other in zip(best.domains, safe.domains, strict=True):
        assert other.candidates == d.candidates  # the same predictors
        kept = other.decision == "kept stable"
        assert other.scores["answer"] == (d.scores["stable"] if kept else d.scores["answer"])
    assert "kept stable" in {d.decision for d in safe.domains}
    assert {row["regret"] for row in best.rows()} == {d.regret for d in best.domains}


@pytest.fixture
def scored(monkeypatch):
    """Every matrix of probabilities that is scored, in order."""
    seen = []

    def record(y, proba, *costs):
        seen.append(proba.tobytes())
        return score_predictions(y, proba, *costs)

    monkeypatch.setattr(evaluation, "score_predictions", record)
    return seen


def permute_within(y, rows):
    permuted = y.copy()
    permuted[rows] = np.random.default_rng(0).permutation(permuted[rows])
    return permuted


def test_permuted_labels_of_the_new_domain_change_no_byte_of_what_declares_no_labels(scored):
    X, y, domain = wards(n=400)
    last = np.flatnonzero(domain == "agreement 0.1")
    runs = []
    for labels in (y, permute_within(y, last)):
        result = MODEL.evaluate(X, labels, domain)
        # The permuted domain is the last one: its candidates, the answer and, last of all, with labels.
        runs.append(scored[-len(result.domains[-1].candidates) - 2 :])
    first, second = runs
    assert len(first) >= len(COMPARED)
    assert first[:-1] == second[:-1]
    assert first[-1] != second[-1]  # which shows that the comparison can fail


def test_the_scorer_does_not_pass_labels_on(scored):
    X, y, domain = wards(n=400)
    new = domain == "agreement 0.1"
    model = clone(MODEL).fit(X[~new], y[~new], sample_domain=domain[~new])
    for labels in (y[new], np.random.default_rng(0).permutation(y[new])):
        adapted_scorer()(model, X[new], labels)
    assert scored[0] == scored[1]


def test_a_tiny_domain_is_skipped_and_a_validation_domain_may_be_the_new_one():
    X, y, domain = wards(n=400)
    domain = domain.astype(object)
    domain[:3] = "tiny"
    model = clone(MODEL).set_params(validation_domain="agreement 0.8")
    result = model.evaluate(X, y, domain)
    by_name = {d.domain: d for d in result.domains}
    assert by_name["tiny"].decision == "skipped"
    assert "3 rows are too few" in by_name["tiny"].reason
    assert np.isfinite(result.mean("answer"))
    assert repr(result) == str(result)


def test_many_domains_are_left_out_in_groups_and_answered_each_by_itself(monkeypatch):
    """As by hand; and one by one where groups would take a class away."""
    X, y, domain = wards(agreements=(0.9, 0.8, 0.7, 0.1), n=150)
    names = list(dict.fromkeys(domain))
    alone = {}
    for together in (names[::2], names[1::2]):
        rest = ~np.isin(domain, together)
        fitted = clone(MODEL).fit(X[rest], y[rest], sample_domain=domain[rest])
        for name in together:
            here = domain == name
            alone[name] = evaluation.compare_on_domain(fitted, X[here], y[here])
    monkeypatch.setattr(evaluation, "MOST_FITS", 2)
    for one in MODEL.evaluate(X, y, domain).domains:
        assert one.decision == alone[one.domain].decision
        assert one.scores == alone[one.domain].scores
    third = np.where(np.isin(domain, names[::2]) & (np.arange(len(y)) % 3 == 0), 2, y)
    result = MODEL.evaluate(X, third, domain)
    assert [d.domain for d in result.domains] == names
    assert np.isfinite(result.mean("answer"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sample_domain": np.zeros(1200)}, "at least two domains"),
        ({"sample_domain": np.zeros(3)}, "one label and one domain per row"),
        ({"y": np.repeat([0, 1, 2], 400)}, "which no training domain has"),
    ],
)
def test_bad_input(change, sentence):
    X, y, domain = wards(n=400)
    with pytest.raises(ValueError, match=sentence):
        MODEL.evaluate(**({"X": X, "y": y, "sample_domain": domain} | change))


def test_scores_equal_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    p = np.clip(0.3 * y + 0.7 * rng.random(300), 0.01, 0.99)
    scores = score_predictions(y, np.column_stack([1 - p, p]))
    assert scores["log_loss"] == pytest.approx(log_loss(y, p))
    assert scores["brier"] == pytest.approx(brier_score_loss(y, p))
    assert scores["auroc"] == pytest.approx(roc_auc_score(y, p))
    assert scores["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, p > 0.5))


def test_the_scorer_adapts_to_each_domain_and_negates_losses():
    X, y, domain = wards((0.9, 0.8, 0.85, 0.1))
    rest = np.isin(domain, ["agreement 0.9", "agreement 0.8"])
    model = clone(MODEL).fit(X[rest], y[rest], domain[rest])
    mixed = adapted_scorer("accuracy")(model, X[~rest], y[~rest])
    apart = adapted_scorer("accuracy")(model, X[~rest], y[~rest], sample_domain=domain[~rest])
    assert apart == pytest.approx(0.875, abs=0.03)  # 0.85 as trained and 0.9 turned round
    assert mixed < apart - 0.05
    assert adapted_scorer("log_loss")(model, X[~rest], y[~rest]) < 0
    with pytest.raises(ValueError, match=r"the classes \[7\], which no training domain has"):
        adapted_scorer()(model, X[~rest], np.full((~rest).sum(), 7))
    with pytest.raises(ValueError, match="metric='luck' is not known"):
        adapted_scorer("luck")


def test_answers_are_compared_by_the_metric_that_is_asked_for():
    X, y, domain = wards(n=400)
    result = MODEL.evaluate(X, y, domain, metric="log_loss")
    assert str(result).splitlines()[0].startswith("log loss")
    for d in result.domains:
        assert d.best == min(d.candidates, key=d.candidates.get)
        assert d.regret == pytest.approx(d.scores["answer"]["log_loss"] - d.candidates[d.best])
    assert result.gain == pytest.approx(result.mean("stable", "log_loss") - result.mean("answer", "log_loss"))
    with pytest.raises(ValueError, match="cost needs costs"):
        MODEL.evaluate(X, y, domain, metric="cost")
    with pytest.raises(ValueError, match="use one of accuracy, balanced_accuracy"):
        MODEL.evaluate(X, y, domain, metric="f1")


def test_costs_reach_what_is_told_and_what_is_decided():
    X, y, domain = wards(agreements=(0.9, 0.8, 0.85), n=400)
    costs = np.array([[0.0, 1.0], [8.0, 0.0]])
    model = clone(MODEL).set_params(settings=Settings(costs=costs)).fit(X, y, sample_domain=domain)
    X_new, y_new = draw_anticausal(1000, 0.1, 9)
    adapted = model.adapt(X_new)
    for decides in (model, adapted):
        wanted = (decides.predict_proba(X_new)[:, 1] > 1 / 9).astype(int)
        np.testing.assert_array_equal(decides.predict(X_new), wanted)
    result = model.evaluate(X, y, domain)
    assert result.metric == "cost"
    one = result.domains[0]
    assert one.regret == pytest.approx(one.scores["answer"]["cost"] - min(one.candidates.values()))
    proba = adapted.predict_proba(X_new)
    said = score_predictions(y_new, proba, costs)["cost"]
    assert said == pytest.approx(costs[y_new, adapted.predict(X_new)].mean())


def test_balanced_accuracy_decides_as_it_counts():
    """Likeliest classes would be judged by how often they name the rare one: who is too sure would win."""
    rng = np.random.default_rng(0)
    y = (rng.random(3000) < 0.1).astype(int)
    X = 1.5 * y[:, None] + rng.normal(size=(3000, 2))
    domain = np.repeat(["a", "b", "c"], 1000)
    model = clone(MODEL).set_params(settings=Settings(metric="balanced_accuracy")).fit(X, y, domain)
    shares = model.training_.source_prior
    for one in (model, model.adapt(X)):
        proba = one.predict_proba(X)
        np.testing.assert_array_equal(one.predict(X), (proba / shares).argmax(axis=1))
        assert proba[:, 1].mean() == pytest.approx(0.1, abs=0.02)
        assert balanced_accuracy_score(y, one.predict(X)) > 0.75
    result = model.evaluate(X, y, domain)
    assert result.mean("answer", "balanced_accuracy") > 0.75
    dear = Settings(metric="balanced_accuracy", costs=1.0 - np.eye(2))
    plain = clone(model).set_params(settings=dear).fit(X, y, domain)
    np.testing.assert_array_equal(plain.predict(X), plain.predict_proba(X).argmax(axis=1))
