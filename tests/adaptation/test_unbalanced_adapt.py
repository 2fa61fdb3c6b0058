"""`adapt` with an exact f_S where classes are rare: the ceiling of the family, and the new class shares."""

import numpy as np
import pytest
from unbalanced import PRIORS, Family, columns

from sfboost import Training
from sfboost.adaptation import adapt

every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


@every_prior
def test_under_label_shift_the_new_class_shares_are_estimated(prior):
    family, there = Family(prior), np.roll(prior, 1) * 0.5 + 0.5 * np.array(prior)
    named, unstable, y = family.draw(6000, 0.1, np.random.default_rng(0), prior=there)
    stable, X = family.stable(named), columns(unstable, len(prior))
    adapted = adapt(stable, X, transport="likelihood", training=Training(source_prior=prior))
    np.testing.assert_allclose(adapted.prior, there, atol=0.03)
    assert (adapted.predict(stable, X) == y).mean() > family.ceiling(0.1, there) - 0.015
