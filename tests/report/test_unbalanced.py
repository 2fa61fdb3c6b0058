"""The page of a new hospital where one patient in ten is ill."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from unbalanced import BINARY, PRIORS, Family

from sfboost import StableFeatureBoosting
from sfboost.report import describe_training, make_facts, render
from sfboost.report.training import evaluation_rows


def table(named, unstable, rng):
    noise = 0.1 * rng.normal(size=(len(named), 2))
    return pd.DataFrame(np.column_stack([named, unstable]) + noise, columns=["age", "ward"])


# One is enough before each change; the others are asked with the long tests.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (i > 0)) for i, name in enumerate(BINARY)]
)
def test_the_page_tells_the_rare_class_its_share_and_the_reversed_feature(name):
    family, rng = Family(PRIORS[name], accuracy=0.9), np.random.default_rng(0)
    named, unstable, y, domain = family.training(3000, rng)
    X, labels = table(named, unstable, rng), np.array(["no", "yes"])[y]
    model = StableFeatureBoosting(["age"], ["ward"])
    described = replace(
        describe_training(model, X, labels, domain),
        evaluation=evaluation_rows(model.evaluate(X, labels, domain)),
    )
    named, unstable, y = family.draw(6000, 0.1, rng)
    new = table(named, unstable, rng)
    facts = make_facts(model.adapt(new), described, new, y=np.array(["no", "yes"])[y])
    np.testing.assert_allclose(facts.prior, np.bincount(y) / len(y), atol=0.02)
    adapted, stable = (facts.scores.by_method[m] for m in ("answer", "stable"))
    assert adapted["accuracy"] >= stable["accuracy"]
    assert adapted["balanced_accuracy"] > stable["balanced_accuracy"]
    assert adapted["log_loss"] < stable["log_loss"]
    assert "Here ward says the opposite" in facts.headline.sentence
    assert f"{100 * facts.prior[1]:.1f}" in render(facts)
