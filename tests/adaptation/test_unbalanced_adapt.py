"""`adapt` with an exact f_S where classes are rare: the ceiling of the family, and the new class shares."""

import numpy as np
import pytest
from unbalanced import PRIORS, Family, columns

from sfboost import Settings, Training
from sfboost.adaptation import adapt

every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


@pytest.mark.long
@every_prior
@pytest.mark.parametrize("agreement", [0.1, 0.9])
@pytest.mark.parametrize("correction", ["likelihood", "posthoc"])
def test_every_correction_reaches_the_ceiling(prior, agreement, correction):
    family = Family(prior)
    named, unstable, y = family.draw(6000, agreement, np.random.default_rng(0))
    stable, X = family.stable(named), columns(unstable, len(prior))
    adapted = adapt(stable, X, settings=Settings(correction=correction))
    assert (adapted.predict(stable, X) == y).mean() > family.ceiling(agreement) - 0.015
    np.testing.assert_allclose(adapted.prior, np.bincount(y) / len(y), atol=0.02)


@every_prior
def test_under_label_shift_the_new_class_shares_are_estimated(prior):
    family, there = Family(prior), np.roll(prior, 1) * 0.5 + 0.5 * np.array(prior)
    named, unstable, y = family.draw(6000, 0.1, np.random.default_rng(0), prior=there)
    stable, X = family.stable(named), columns(unstable, len(prior))
    adapted = adapt(stable, X, transport="likelihood", training=Training(source_prior=prior))
    np.testing.assert_allclose(adapted.prior, there, atol=0.03)
    assert (adapted.predict(stable, X) == y).mean() > family.ceiling(0.1, there) - 0.015
