"""What belongs together is chosen together: the codes of one category are one column."""

import logging

import numpy as np
import pytest

from sfboost import StableFeatureBoosting, StableFeatureSelector

RNG = np.random.default_rng(0)


def rows(n=1500):
    """A stable category of three wards as two codes, and a number whose meaning turns."""
    y, domain = RNG.integers(0, 2, 2 * n), np.repeat(["a", "b"], n)
    ward = np.where(RNG.random(2 * n) < 0.7, y, RNG.integers(0, 3, 2 * n))
    turned = np.where(domain == "a", 1, -1) * y + RNG.normal(size=2 * n)
    return np.column_stack([ward == 1, ward == 2, turned]).astype(float), y, domain


def test_the_codes_of_a_category_come_or_stay_out_together():
    X, y, domain = rows()
    selector = StableFeatureSelector(groups=["ward", "ward", "turned"]).fit(X, y, sample_domain=domain)
    assert [column.name for column in selector.selection_.columns] == ["ward", "turned"]
    assert selector.support_.tolist() == [True, True, False]
    assert selector.ranking_.tolist() == [1, 1, 2]


def test_each_column_by_itself_is_what_no_groups_mean():
    X, y, domain = rows()
    alone = StableFeatureSelector().fit(X, y, sample_domain=domain)
    named = StableFeatureSelector(groups={"x2": "x2"}).fit(X, y, sample_domain=domain)
    assert str(alone.selection_) == str(named.selection_)


def test_drift_is_told_by_domain_in_the_order_of_drift():
    X, y, domain = rows()
    third = np.repeat(["a", "b", "c"], 1000)
    selection = (
        StableFeatureSelector(groups=["ward", "ward", "turned"]).fit(X, y, sample_domain=third).selection_
    )
    assert all(len(column.by_domain) == 3 for column in selection.columns)
    assert all(max(column.by_domain) == column.drift for column in selection.columns)
    assert [column.name for column in selection.in_order] == ["ward", "turned"]
    assert domain is not third


def test_progress_goes_to_the_log(caplog):
    X, y, domain = rows()
    with caplog.at_level(logging.INFO, logger="sfboost"):
        StableFeatureSelector().fit(X, y, sample_domain=domain)
    assert "3 of 3 tested" in caplog.text


def test_a_frame_is_searched_by_whole_columns():
    pandas = pytest.importorskip("pandas", reason="a frame is needed")
    X, y, domain = rows()
    frame = pandas.DataFrame(
        {"ward": np.array(["p", "q", "r"])[(X[:, :2] @ [1, 2]).astype(int)], "turned": X[:, 2]}
    )
    model = StableFeatureBoosting(stable_features="auto", play=False).fit(frame, y, sample_domain=domain)
    assert {name.partition("=")[0] for name in model.stable_columns_.names} == {"ward"}
    assert len(model.stable_columns_.names) == 2


def test_groups_must_name_every_column():
    X, y, domain = rows()
    with pytest.raises(ValueError, match="groups has 2 names, but X has 3 columns"):
        StableFeatureSelector(groups=["a", "b"]).fit(X, y, sample_domain=domain)
