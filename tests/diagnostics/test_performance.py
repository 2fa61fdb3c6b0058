"""Scores without labels: exact where the assumptions hold, honest elsewhere."""

import numpy as np
import pytest

from sfboost.adaptation.scores import LOSSES, Yardstick
from sfboost.boosting.metrics import score_predictions
from sfboost.diagnostics.performance import Performance, estimate_performance, gain_over_stable
from sfboost.marginal import combine
from sfboost_lab.theory import FiniteJoint

EVEN = np.array([0.5, 0.5])
LAWS = {
    "reversed colour": FiniteJoint.from_conditionals(
        [0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], [[0.1, 0.9], [0.9, 0.1]]
    ),
    "skewed classes": FiniteJoint.from_conditionals(
        [0.9, 0.1], [[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]
    ),
    "three classes": FiniteJoint.from_conditionals(
        [0.5, 0.3, 0.2],
        [[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.2, 0.6]],
        [[0.8, 0.2], [0.3, 0.7], [0.1, 0.9]],
    ),
}


def cells(law):
    """Stable and unstable value of each cell, and its mass: the whole law as a few weighted rows."""
    s, u = (part.ravel() for part in np.indices(law.pair_mass.shape))
    return s, u, law.pair_mass.ravel()


def answers(law):
    """Classifiers as tables of probabilities by stable and unstable value."""
    n_stable, n_unstable, _ = law.table.shape
    stable = np.repeat(law.stable_posterior[:, None], n_unstable, axis=1)
    wrong = law.unstable_posterior[:, ::-1]  # believes the opposite
    pooled = np.array(
        [
            [combine(law.stable_posterior[[s]], wrong[[u]], law.prior)[0] for u in range(n_unstable)]
            for s in range(n_stable)
        ]
    )
    return {"stable": stable, "pooled": pooled, "best": law.joint_posterior}


def truth(law, answer):
    """Scores by the law itself: a row for each cell and label, as often as it is likely."""
    s, u, y = (part.ravel() for part in np.indices(law.table.shape))
    counts = np.rint(law.table.ravel() * 1e5).astype(int)
    rows = np.repeat(np.arange(len(s)), counts)
    return score_predictions(y[rows], answer[s[rows], u[rows]])


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("which", ["stable", "pooled", "best"])
def test_with_the_exact_law_every_score_is_exact(name, which):
    law = LAWS[name]
    s, u, mass = cells(law)
    answer = answers(law)[which]
    found = estimate_performance(law.stable_posterior[s], lambda i, k: answer[s[i], u[k]], sample_weight=mass)
    for score, value in truth(law, answer).items():
        assert found.value[score] == pytest.approx(value, abs=2e-4), score


def test_costs_are_those_of_the_cheapest_decisions():
    law, cost = LAWS["skewed classes"], np.array([[0.0, 1.0], [20.0, 0.0]])
    s, u, mass = cells(law)
    best = law.joint_posterior
    found = estimate_performance(
        law.stable_posterior[s], lambda i, k: best[s[i], u[k]], sample_weight=mass, cost=cost
    )
    expected = (law.pair_mass * (best @ cost).min(axis=2)).sum()
    assert found.value["cost"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.long
def test_the_intervals_cover_the_truth_as_often_as_they_say():
    law, hits = LAWS["reversed colour"], []
    believed = answers(law)["pooled"]
    accuracy = truth(law, believed)["accuracy"]
    for seed in range(60):
        s, u, _ = law.sample(1000, random_state=seed)
        found = estimate_performance(
            law.stable_posterior[s],
            lambda i, k, s=s, u=u: believed[s[i], u[k]],
            random_state=seed,
        )
        hits.append(found.lower["accuracy"] <= accuracy <= found.upper["accuracy"])
    assert 0.78 <= np.mean(hits) <= 1.0


def test_a_leak_moves_the_estimate_and_the_interval_allows_for_it():
    clean = LAWS["reversed colour"].table
    # Within each class the unstable feature follows the stable one in 5 % of the rows.
    copy = np.stack([np.diag(clean.sum(axis=1)[:, y]) for y in range(2)], axis=2)
    law = FiniteJoint(0.95 * clean + 0.05 * copy)
    s, u, mass = cells(law)
    colour = np.array([[0.1, 0.9], [0.9, 0.1]])
    predict = {"sample_weight": mass, "predict": lambda i, k: colour[u[k]]}
    actual = law.table[:, 0, 1].sum() + law.table[:, 1, 0].sum()
    blind = estimate_performance(law.stable_posterior[s], **predict)
    careful = estimate_performance(law.stable_posterior[s], leak=float(np.abs(law.leak).max()), **predict)
    assert abs(blind.value["accuracy"] - actual) > 0.005
    assert careful.lower["accuracy"] <= actual <= careful.upper["accuracy"]
    assert (
        careful.upper["accuracy"] - careful.lower["accuracy"]
        > blind.upper["accuracy"] - blind.lower["accuracy"]
    )


def test_a_stable_predictor_that_knows_nothing_gives_no_figures():
    half = np.full((100, 2), 0.5)
    known = {"leak": 0.0, "weight": np.ones(100), "level": 0.05}
    assert gain_over_stable(half, lambda i, k: half[i], Yardstick("brier"), **known) is None
    found = estimate_performance(half, lambda i, k: half[i])
    assert found.value == {}
    assert "hardly tells the classes apart" in str(found)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("metric", ["accuracy", "log_loss", "brier", "auroc"])
def test_with_the_exact_law_the_gain_over_f_s_is_exact_and_a_leak_lowers_its_limit(name, metric):
    law = LAWS[name]
    s, u, mass = cells(law)
    every, by = answers(law), Yardstick(metric)
    before, after = (truth(law, every[which])[metric] for which in ("stable", "pooled"))
    known = {"weight": mass, "level": 0.05}

    def predict(i, k):
        return every["pooled"][s[i], u[k]]

    found = [
        gain_over_stable(law.stable_posterior[s], predict, by, leak=leak, **known) for leak in (0.0, 0.1)
    ]
    wanted = (after - before) * (-1.0 if metric in LOSSES else 1.0)
    assert [gain for gain, _ in found] == pytest.approx([wanted] * 2, abs=4e-4)
    assert wanted > found[0][1] > found[1][1]


@pytest.mark.long
@pytest.mark.parametrize("which", ["pooled", "best"])
def test_the_limit_of_the_gain_is_below_the_truth_in_nineteen_of_twenty_draws(which):
    law = LAWS["skewed classes"]
    answer, scores = answers(law)[which], [truth(law, answers(law)[name]) for name in (which, "stable")]
    gain, found = scores[0]["accuracy"] - scores[1]["accuracy"], []
    for seed in range(200):
        s, u, _ = law.sample(1000, random_state=seed)
        known = {"leak": 0.0, "weight": np.ones(1000), "level": 0.05}
        found.append(
            gain_over_stable(
                law.stable_posterior[s],
                lambda i, k, s=s, u=u: answer[s[i], u[k]],
                Yardstick("accuracy"),
                **known,
            )
        )
    told, least = np.array(found).T
    assert told.mean() == pytest.approx(gain, abs=3 * told.std() / np.sqrt(200))
    assert np.mean(least <= gain) >= 0.95


def test_an_estimate_beyond_what_a_score_can_be_is_cut_off():
    found = Performance.around({"auroc": 1.16, "log_loss": 1.4}, {"auroc": 0.5, "log_loss": 0.1}, 0.0, 0.9)
    assert found.value == {"auroc": 1.0, "log_loss": 1.4}
    assert found.lower["auroc"] == pytest.approx(0.66)
    assert found.upper["auroc"] == 1.0
