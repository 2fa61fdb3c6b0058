"""Describing training costs no fit beyond those of the model itself."""

import numpy as np
from hospitals import training
from sklearn.linear_model import LogisticRegression

from sfboost import StableFeatureBoosting
from sfboost.report import describe_training


class Counting(LogisticRegression):
    fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).fits += 1
        return super().fit(X, y, sample_weight)


def test_fits_are_those_of_folds_of_all_rows_and_of_three_domains_left_out(monkeypatch):
    monkeypatch.setattr(Counting, "fits", 0)
    rows = training(100)
    X = rows[["age", "heart_rate"]]
    model = StableFeatureBoosting(["age"], stable=Counting(), cv=5)
    described = describe_training(model, X, rows["sick"].to_numpy(str), rows["hospital"].to_numpy(object))
    assert (
        Counting.fits == (5 + 1) + 3 * 3 + 2
    )  # stable; left out: stable, pooled, X_U alone; the last two for all
    again = StableFeatureBoosting(["age"], stable=Counting(), cv=5)
    again.fit(X, rows["sick"], sample_domain=rows["hospital"])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert [domain.name for domain in described.domains] == ["north", "south", "east"]
