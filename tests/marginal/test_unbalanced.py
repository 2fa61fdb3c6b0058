"""The theorems of Section 4 where classes are rare: 5, 10 and 20 % positives, and skewed K = 3 and 5."""

import numpy as np
import pytest
from unbalanced import PRIORS, Family

from sfboost.marginal import PseudoLabelStatistics, combine, correct_posthoc

every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


@every_prior
@pytest.mark.parametrize("agreement", [0.02, 0.1, 0.5, 0.9])
def test_both_conditionals_are_recovered_exactly(prior, agreement):
    joint = Family(prior).joint(agreement)
    statistics = PseudoLabelStatistics.from_proba(joint.stable_posterior, joint.stable_mass)
    np.testing.assert_allclose(statistics.prior, prior, atol=1e-12)
    unstable = correct_posthoc(joint.pseudo_posterior, statistics.confusion)
    np.testing.assert_allclose(unstable, joint.unstable_posterior, atol=1e-10)
    k = len(prior)
    stable, given = np.repeat(joint.stable_posterior, k, axis=0), np.tile(unstable, (k, 1))
    np.testing.assert_allclose(
        combine(stable, given, statistics.prior), joint.joint_posterior.reshape(-1, k), atol=1e-10
    )


@every_prior
def test_a_constant_stable_predictor_is_worth_nothing_however_often_it_is_right(prior):
    family = Family(prior, accuracy=1 / len(prior))
    joint = family.joint(0.9)
    statistics = PseudoLabelStatistics.from_proba(joint.stable_posterior, joint.stable_mass)
    assert statistics.informativeness == pytest.approx(0.0, abs=1e-12)
