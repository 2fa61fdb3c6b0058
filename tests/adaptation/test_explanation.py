import numpy as np
import pytest
from joints import GaussianFamily

from sfboost import AdaptationRefused, Settings
from sfboost.adaptation import adapt


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    "options", [{}, {"correction": "posthoc"}, {"method": "paper", "calibrate_unstable": True}]
)
def test_the_terms_add_up(n_classes, options):
    _, stable, X = GaussianFamily(0, n_classes=n_classes).draw(600)
    adaptation = adapt(stable, X, refuse=False, settings=Settings(**options))
    why = adaptation.explain(stable[5], X[5])
    total = why.stable + why.unstable - why.prior
    np.testing.assert_allclose(total - np.log(np.exp(total).sum()), why.joint, atol=1e-9)
    np.testing.assert_allclose(np.exp(why.joint), adaptation.predict_proba(stable[5:6], X[5:6])[0])
    np.testing.assert_allclose(why.features.sum(axis=0) + why.baseline, why.unstable, atol=1e-9)
    assert why.prediction == adaptation.predict(stable[5:6], X[5:6])[0]
    np.testing.assert_array_equal(why.feature_values, X[5])


def test_it_prints_names_and_values():
    _, stable, X = GaussianFamily(0, n_classes=2).draw(600)
    adaptation = adapt(stable, X, classes=["ill", "well"], refuse=False)
    text = str(adaptation.explain(stable[0], X[0], feature_names=("a", "b", "c", "glucose")))
    assert "ill" in text
    assert "glucose = " in text
    assert "log stable" in text
    assert str(adaptation).startswith("Adaptation: adapted")


def test_a_kept_stable_predictor_explains_itself():
    _, stable, X = GaussianFamily(0, n_classes=2).draw(20)
    with pytest.warns(AdaptationRefused):
        kept = adapt(stable, X)
    why = kept.explain(stable[0], X[0])
    np.testing.assert_allclose(np.exp(why.joint), stable[0])
    np.testing.assert_array_equal(why.unstable, why.prior)
    assert why.stable_alone
    assert str(why).endswith("The stable features alone decide: the answer does not use the unstable ones.")
