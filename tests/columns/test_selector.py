"""StableFeatureSelector finds the truth, or says that it cannot."""

import logging

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from sfboost import StableFeatureBoosting
from sfboost.columns import StableFeatureSelector


def chosen(data, **options):
    return tuple(np.flatnonzero(StableFeatureSelector(**options).fit(*data).support_))


def share(make, truth, repeats, **options):
    return np.mean([chosen(make(np.random.default_rng(r)), **options) == truth for r in range(repeats)])


def test_anticausal_coins_are_told_apart(families):
    assert share(families.anticausal_coins, (0,), 20) >= 0.9


def test_cause_effect_coins_keep_the_cause_and_leave_what_is_stable_only_alone(families):
    assert share(families.cause_effect_coins, (0,), 15) >= 0.9
    # Marginally the unstable coin says nothing, so it is stable alone; informative it is not.
    informative = [
        StableFeatureSelector()
        .fit(*families.cause_effect_coins(np.random.default_rng(r)))
        .selection_.columns[1]
        .informative
        for r in range(15)
    ]
    assert np.mean(informative) <= 0.2


def test_two_causes_that_shift_are_stable_only_together(families):
    result = StableFeatureSelector().fit(*families.shifting_causes(np.random.default_rng(1)))
    assert tuple(np.flatnonzero(result.support_)) == (0, 1)
    assert {column.verdict for column in result.selection_.columns[:2]} == {"unstable"}
    assert "together" in result.selection_.columns[0].why
    assert share(families.shifting_causes, (0, 1), 8) >= 0.75


def test_a_spouse_and_its_effect_are_stable_only_together(families):
    result = StableFeatureSelector().fit(*families.spouse(np.random.default_rng(0)))
    assert tuple(np.flatnonzero(result.support_)) == (0, 1)
    assert not result.selection_.columns[1].informative
    assert share(families.spouse, (0, 1), 5) >= 0.6


def test_columns_stable_alone_but_not_together_are_thinned():
    rng = np.random.default_rng(0)
    n, domain = 3000, np.repeat([0, 1], 3000)
    y = rng.integers(0, 2, 2 * n)
    # Two effects whose noises are correlated in opposite ways: each alone is stable, the pair is not.
    first = rng.standard_normal(2 * n)
    second = np.where(domain, 0.95, -0.95) * first + np.sqrt(1 - 0.95**2) * rng.standard_normal(2 * n)
    X = np.column_stack([1.5 * y + first, 0.8 * y + second])
    selector = StableFeatureSelector().fit(X, y, sample_domain=domain)
    assert [column.verdict for column in selector.selection_.columns] == ["stable", "stable"]
    assert selector.get_support().tolist() == [True, False]
    assert "not together" in selector.selection_.columns[1].why


def test_label_shift_needs_the_other_kind_and_the_sentence_says_so(families):
    data = families.gaussian_effects(np.random.default_rng(0), 2500, 2, 2, priors=[[0.3, 0.7], [0.7, 0.3]])
    selector = StableFeatureSelector().fit(*data)
    assert selector.status_ == "none"
    assert (
        "The same in every domain: x0, x1, x2, given the class (kind='likelihood')."
        in selector.selection_.sentence
    )
    assert chosen(data, kind="likelihood") == (0, 1, 2)


def test_two_tiny_domains_cannot_tell(families):
    for seed in range(15):
        selector = StableFeatureSelector().fit(
            *families.gaussian_effects(np.random.default_rng(seed), 25, 2, 2)
        )
        assert selector.status_ == "cannot tell"
        assert not selector.get_support().any()
        assert "more rows" in selector.selection_.sentence


@pytest.mark.long
def test_errors_on_either_side_stay_below_the_level():
    """Six columns: three without drift, three with a drift of exactly the tolerance."""
    rng, n, false_alarm, false_stable = np.random.default_rng(0), 1200, [], []
    for _ in range(30):
        domain, y = np.repeat([0, 1], n), rng.integers(0, 2, 2 * n)
        columns = [np.where(rng.random(2 * n) < 0.7, y, 1 - y) for _ in range(3)]
        # Pr[Y | x] is .6 and .7 in the two domains: a drift of .1.
        columns += [np.where(rng.random(2 * n) < np.where(domain, 0.6, 0.7), y, 1 - y) for _ in range(3)]
        X = np.column_stack(columns).astype(float)
        verdicts = [c.verdict for c in StableFeatureSelector().fit(X, y, domain).selection_.columns]
        false_alarm.append("unstable" in verdicts[:3])
        false_stable.append("stable" in verdicts[3:])
    assert np.mean(false_alarm) <= 0.17  # .05 + three standard errors
    assert np.mean(false_stable) <= 0.17


@pytest.mark.filterwarnings("ignore:No features were selected")  # one domain: nothing to select
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_it_follows_the_rules_of_scikit_learn():
    check_estimator(StableFeatureSelector())


def test_ranking_puts_the_least_drift_first_and_names_come_out(families):
    pd = pytest.importorskip("pandas", reason="needs the optional extra sfboost[app]")
    X, y, domain = families.gaussian_effects(np.random.default_rng(0), 2500, 2, 2)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "u", "v", "w", "noise"])
    before = frame.copy()
    selector = StableFeatureSelector().fit(frame, y, sample_domain=np.array(["north", "south"])[domain])
    assert selector.get_feature_names_out().tolist() == ["a", "b", "c"]
    assert sorted(selector.ranking_) == list(range(1, 8))
    assert set(np.argsort(selector.ranking_)[-3:]) == {3, 4, 5}
    pd.testing.assert_frame_equal(frame, before)
    text = str(selector.selection_)
    assert text.startswith("selected: a, b, c are informative")
    assert text.count("\n* ") == 3


def test_the_answer_does_not_depend_on_names_order_or_monotone_scale(families):
    X, y, domain = families.gaussian_effects(np.random.default_rng(2), 1500, 2, 2)
    plain = StableFeatureSelector().fit(X, y, domain)
    order = np.random.default_rng(0).permutation(len(y))
    other = clone(plain).fit(
        np.exp(3 * X[order]), np.array(["no", "yes"])[y[order]], np.array(["b", "a"])[domain[order]]
    )
    assert np.array_equal(plain.support_, other.support_)
    for a, b in zip(plain.selection_.columns, other.selection_.columns, strict=True):
        assert a.p_change == pytest.approx(b.p_change, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "domain", "message"),
    [
        ({"tolerance": 0.0}, None, "tolerance"),
        ({"kind": "both"}, None, "kind"),
        ({}, [0, 1], "one domain per row"),
        ({}, [None] * 40, "missing entries"),
    ],
)
def test_bad_input_is_answered_by_a_sentence(options, domain, message):
    with pytest.raises(ValueError, match=message):
        StableFeatureSelector(**options).fit(np.zeros((40, 2)), np.arange(40) % 2, sample_domain=domain)


@pytest.fixture(scope="module")
def wards():
    """A stable category of three wards as two codes, and a number whose meaning turns."""
    rng, n = np.random.default_rng(0), 1500
    y, domain = rng.integers(0, 2, 2 * n), np.repeat(["a", "b"], n)
    ward = np.where(rng.random(2 * n) < 0.7, y, rng.integers(0, 3, 2 * n))
    turned = np.where(domain == "a", 1, -1) * y + rng.normal(size=2 * n)
    return np.column_stack([ward == 1, ward == 2, turned]).astype(float), y, domain


def test_what_belongs_together_is_chosen_together_and_tells_its_progress(wards, caplog):
    X, y, domain = wards
    with caplog.at_level(logging.INFO, logger="sfboost"):
        selector = StableFeatureSelector(groups=["ward", "ward", "turned"]).fit(X, y, sample_domain=domain)
    assert "2 of 2 tested" in caplog.text
    assert [column.name for column in selector.selection_.in_order] == ["ward", "turned"]
    assert selector.support_.tolist() == [True, True, False]
    assert selector.ranking_.tolist() == [1, 1, 2]
    with pytest.raises(ValueError, match="groups has 2 names, but X has 3 columns"):
        StableFeatureSelector(groups=["a", "b"]).fit(X, y, sample_domain=domain)


def test_a_frame_is_searched_by_whole_columns(wards):
    pandas = pytest.importorskip("pandas", reason="a frame is needed")
    X, y, domain = wards
    ward = np.array(["p", "q", "r"])[(X[:, :2] @ [1, 2]).astype(int)]
    frame = pandas.DataFrame({"ward": ward, "turned": X[:, 2]})
    model = StableFeatureBoosting(stable_features="auto").fit(frame, y, sample_domain=domain)
    assert [name.partition("=")[0] for name in model.stable_columns_.names] == ["ward", "ward"]
