"""Stability of the other kind: P(X_S | Y) transports, the new class shares are estimated."""

import warnings

import numpy as np
import pytest

from sfboost import AdaptationWarning, Settings, StableFeatureBoosting, Training
from sfboost.adaptation import adapt
from sfboost_lab.testing import Dials, simulate


def learned_anew(model, X, y):
    """Accuracy of SFB, whichever predictor answers, and what was learned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        adapted = model.adapt(X)
    return np.mean(adapted.answers_["boosted"].argmax(axis=1) == y), adapted.adaptation


def scores(problem):
    X, y, domain = problem.training_rows()
    found = {}
    for stability in ("posterior", "likelihood"):
        model = StableFeatureBoosting([0, 1], learner=None, transport=stability).fit(X, y, domain)
        right, learned = learned_anew(model, problem.new.X, problem.new.y)
        found[stability] = right, learned.prior[1]
    return found


def test_each_kind_recovers_its_own_world_and_loses_in_the_other():
    label = simulate(Dials(label_shift=1.5, n_rows=4000, n_domains=3), seed=2)
    covariate = simulate(Dials(covariate_shift=1.5, n_rows=4000, n_domains=3), seed=2)
    in_label, in_covariate = scores(label), scores(covariate)
    assert in_label["likelihood"][0] > in_label["posterior"][0] + 0.03
    assert in_covariate["posterior"][0] > in_covariate["likelihood"][0] + 0.03
    assert in_label["likelihood"][1] == pytest.approx(label.new.y.mean(), abs=0.04)
    assert in_covariate["posterior"][1] == pytest.approx(covariate.new.y.mean(), abs=0.04)


def test_in_the_population_label_shift_is_recovered_exactly():
    """A finite law: x_S, u binary, P(x_S | y) known, prior .5 in training and .8 in the new domain."""
    joint, counts = [], []
    for y, share in ((0, 0.2), (1, 0.8)):
        for x in (0, 1):
            for u in (0, 1):
                right_x, right_u = 0.75 if x == y else 0.25, 0.9 if u == y else 0.1
                joint.append((x, u, y))
                counts.append(share * right_x * right_u)
    x, u, y = np.array(joint).T
    f_source = np.where(x == 1, 0.75, 0.25)  # posterior at equal shares
    weight = 1e5 * np.array(counts)
    adaptation = adapt(
        f_source,
        u[:, None].astype(float),
        sample_weight=weight,
        transport="likelihood",
        training=Training(source_prior=[0.5, 0.5]),
        settings=Settings(l2=1e-9),
        refuse=False,  # eight weighted cells stand for the population
    )
    assert adaptation.prior[1] == pytest.approx(0.8, abs=1e-4)
    truth = {
        (a, b): sum(c for (i, j, k), c in zip(joint, counts, strict=True) if (i, j, k) == (a, b, 1))
        / sum(c for (i, j, _), c in zip(joint, counts, strict=True) if (i, j) == (a, b))
        for a in (0, 1)
        for b in (0, 1)
    }
    expected = [truth[a, b] for a, b in zip(x, u, strict=True)]
    np.testing.assert_allclose(
        adaptation.predict_proba(f_source, u[:, None].astype(float))[:, 1], expected, atol=1e-3
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"transport": "both"}, "transport='both' is not known"),
        ({"transport": "likelihood"}, "needs source_prior"),
        ({"transport": "likelihood", "training": Training(source_prior=[0.5, 0.6])}, "sum to one"),
        ({"transport": "likelihood", "settings": Settings(correction="posthoc")}, "correction"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options, sentence):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=sentence):
        adapt(rng.uniform(0.2, 0.8, 100), rng.normal(size=(100, 1)), **options)
