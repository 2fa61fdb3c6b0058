"""The label-free test of a changed meaning: its size, its power, and what it says by feature."""

import numpy as np
import pytest
from scipy.special import softmax

from sfboost.shift import DomainData, Reference, change_in
from sfboost.shift.prediction import UNKNOWN, Expected
from sfboost.shift.testing import misfit_of

PRIOR = (0.5, 0.5)


def rows(rng, n, slopes=(1.5, 0.8), prior=PRIOR, leak=0.0, moved=0.0, second=None):
    """Gaussian features whose class means are ± half a slope; f_S and the pooled classifier are exact.

    The pooled classifier believes in the slopes (1.5, 0.8) whatever they are here; `leak` is the slope of U
    on X_S within a class, the same everywhere. `second` is the one value that the second feature has here.
    """
    n_classes = len(prior)
    y = rng.choice(n_classes, n, p=prior)
    at = np.linspace(-0.5, 0.5, n_classes)
    stable = 1.5 * at[y] + moved + rng.normal(size=n)
    U = np.array(slopes) * at[y][:, None] + leak * (stable - 1.5 * at[y])[:, None]
    U = U + rng.normal(size=(n, 2))
    if second is not None:
        U[:, 1] = second
    log_stable = np.log(prior) + stable[:, None] * 1.5 * at - 0.5 * (1.5 * at) ** 2
    evidence = sum(U[:, [j]] * s * at - 0.5 * (s * at) ** 2 for j, s in enumerate((1.5, 0.8)))
    view = DomainData.of(softmax(log_stable, 1), U, softmax(log_stable + evidence, 1), stable[:, None])
    return view, y


def reference(rng, n_domains, n=600, **dials):
    drawn = [
        rows(rng, n, (1.5 + 0.2 * rng.normal(), 0.8 + 0.1 * rng.normal()), **dials) for _ in range(n_domains)
    ]
    return Reference.learn([v for v, _ in drawn], [y for _, y in drawn], [f"d{i}" for i in range(n_domains)])


def alarms(n_domains, draws, seed, new, **dials):
    rng = np.random.default_rng(seed)
    return np.mean(
        [
            change_in(reference(rng, n_domains, **dials), rows(rng, 600, **(dials | new))[0]).p_value < 0.05
            for _ in range(draws)
        ]
    )


@pytest.mark.long
@pytest.mark.parametrize("n_domains", [2, 3, 10])
@pytest.mark.parametrize("leak", [0.0, 0.4])
def test_untouched_domains_raise_at_most_the_nominal_share_of_alarms(n_domains, leak):
    """200 draws at a true 5 % have 16 alarms or more in 5 % of the cases."""
    assert alarms(n_domains, 100, 1, {}, leak=leak) <= 0.08


@pytest.mark.parametrize("moved", [{"moved": 0.7}, {"prior": (0.3, 0.7)}])
def test_moved_stable_features_and_class_shares_are_no_change_of_meaning(moved):
    assert alarms(5, 60, 2, moved) <= 0.1


@pytest.mark.long
@pytest.mark.parametrize("n_domains", [2, 5])
@pytest.mark.parametrize(
    "prior", [(0.5, 0.5), (0.9, 0.1), (0.6, 0.25, 0.15)], ids=["even", "one in ten", "three classes"]
)
def test_mirrored_features_are_seen(n_domains, prior):
    assert alarms(n_domains, 20, 3, {"slopes": (-1.5, -0.8)}, prior=prior) >= 0.8


def test_the_feature_that_changed_is_named_with_what_is_left_of_it():
    rng = np.random.default_rng(4)
    found = change_in(reference(rng, 6, 1500), rows(rng, 3000, (-1.5, 0.8))[0])
    assert found.verdict == "changed"
    assert found.changed == ("x0",)
    assert found.features[0].left == pytest.approx(-1.0, abs=0.2)
    assert found.features[1].left == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_a_feature_of_one_value_is_no_change_of_unit(value):
    """The size of a place, in rows of that place: it says nothing, and no more."""
    rng = np.random.default_rng(11)
    known = reference(rng, 6)
    found = change_in(known, rows(rng, 600, second=value)[0])
    assert found.verdict == "unchanged"
    assert not found.features[1].rescaled
    assert "x0" in change_in(known, rows(rng, 600, (-1.5, 0.8), second=value)[0]).changed


def test_an_own_domain_that_says_nothing_of_a_moment_teaches_nothing_of_it():
    told = [(np.array([1.0, 2.0]), np.array([0.1, 0.3])), (np.array([1.4, 1.0]), np.array([0.2, 0.1]))]
    silent = (np.zeros(2), np.full(2, UNKNOWN))
    alone, beside = Expected.of(told), Expected.of([*told, silent])
    np.testing.assert_allclose(beside.value, alone.value, rtol=1e-9)
    np.testing.assert_allclose(beside.variance, alone.variance, rtol=1e-9)
    assert (Expected.of([silent]).compare((np.ones(2), np.ones(2))).p_value > 0.4).all()


def test_a_change_of_unit_is_seen():
    rng = np.random.default_rng(5)
    known, (view, _) = reference(rng, 6), rows(rng, 600)
    other = DomainData.of(
        np.exp(view.log_stable), view.unstable * [10.0, 1.0], np.exp(view.log_pooled), view.features
    )
    found = change_in(known, other)
    assert found.changed == ("x0",)
    assert found.features[0].rescaled
    assert not found.features[1].rescaled


def with_a_rare_code(rng, n, share):
    """`rows`, and an indicator of a code that few rows have."""
    view, y = rows(rng, n)
    U = np.column_stack([view.unstable, rng.random(n) < share])
    return DomainData.of(np.exp(view.log_stable), U, np.exp(view.log_pooled), view.features), y


def test_few_rows_that_lack_a_rare_code_are_no_change_of_unit():
    """Of 60 rows about one has a code of a share of 2 %."""
    rng = np.random.default_rng(12)
    drawn = [with_a_rare_code(rng, 600, 0.02) for _ in range(4)]
    known = Reference.learn([v for v, _ in drawn], [y for _, y in drawn], list("abcd"))
    none = change_in(known, with_a_rare_code(rng, 60, 0.0)[0])
    assert none.verdict != "changed"
    assert not none.features[2].rescaled
    assert change_in(known, with_a_rare_code(rng, 600, 0.4)[0]).features[2].rescaled


def test_one_own_domain_or_few_rows_cannot_tell():
    rng = np.random.default_rng(6)
    assert change_in(reference(rng, 1), rows(rng, 600)[0]).verdict == "cannot tell"
    assert change_in(reference(rng, 5), rows(rng, 20)[0]).verdict == "cannot tell"


@pytest.mark.long
@pytest.mark.parametrize("n", [2, 3, 5, 10, 20, 50, 100])
@pytest.mark.parametrize("prior", [PRIOR, (0.9, 0.1), (0.95, 0.05)])
def test_few_untouched_rows_raise_no_more_alarms_than_many(n, prior):
    """Two rows fit two class means exactly: their error, zero, is no error."""
    rng = np.random.default_rng(7)
    own = reference(rng, 5, prior=prior)
    assert np.mean([change_in(own, rows(rng, n, prior=prior)[0]).p_value < 0.05 for _ in range(100)]) <= 0.1


def test_a_row_of_weight_two_counts_like_two_rows():
    rng = np.random.default_rng(8)
    known, (view, _) = reference(rng, 4), rows(rng, 300)
    parts = (np.exp(view.log_stable), view.unstable, np.exp(view.log_pooled), view.features)
    weight = rng.integers(1, 3, 300)
    twice = [np.repeat(part, weight, axis=0) for part in parts]
    weighted, repeated = (
        change_in(known, DomainData.of(*parts, weight)),
        change_in(known, DomainData.of(*twice)),
    )
    assert weighted.ratio == pytest.approx(repeated.ratio, rel=1e-9)
    assert weighted.value == pytest.approx(repeated.value, rel=1e-9)


def test_the_order_of_rows_and_classes_does_not_matter():
    rng = np.random.default_rng(9)
    drawn, (view, _) = (
        [rows(rng, 400, prior=(0.6, 0.25, 0.15)) for _ in range(3)],
        rows(rng, 500, prior=(0.6, 0.25, 0.15)),
    )

    def told(order, turn):
        def seen(v):
            return DomainData.of(
                np.exp(v.log_stable)[:, turn], v.unstable, np.exp(v.log_pooled)[:, turn], v.features
            )

        labels = [np.argsort(turn)[y] for _, y in drawn]
        known = Reference.learn([seen(v) for v, _ in drawn], labels, list("abc"))
        part = seen(view)
        kept = [getattr(part, name) for name in part.__dataclass_fields__]
        part = DomainData(*(None if values is None else values[order] for values in kept))
        return change_in(known, part)

    plain, other = told(np.arange(500), [0, 1, 2]), told(rng.permutation(500), [2, 0, 1])
    assert other.p_value == pytest.approx(plain.p_value, rel=1e-6)
    assert other.ratio == pytest.approx(plain.ratio, rel=1e-6)


def test_other_columns_than_in_training_are_refused():
    rng = np.random.default_rng(11)
    known, (view, _) = reference(rng, 2, 100), rows(rng, 50)
    with pytest.raises(ValueError, match="1 unstable columns, training had 2"):
        change_in(
            known,
            DomainData.of(
                np.exp(view.log_stable), view.unstable[:, :1], np.exp(view.log_pooled), view.features
            ),
        )


def test_domains_that_differ_by_nature_say_less_than_those_that_do_not():
    """Misfit is one where domains are exchangeable; where it is not, p-values of new rows grow by it."""
    rng = np.random.default_rng(12)
    alike = [misfit_of(reference(rng, 8)) for _ in range(5)]
    assert np.median(alike) == 1.0
    slopes = [(3.0, 0.8)] * 5 + [(0.3, -0.8)] * 2
    drawn = [rows(rng, 3000, slope) for slope in slopes]
    apart = Reference.learn([v for v, _ in drawn], [y for _, y in drawn], list("abcdefg"))
    assert misfit_of(apart) > 1.1
    view, _ = rows(rng, 600, (-1.5, -0.8))
    known = reference(rng, 5)
    plain, doubted = (change_in(known, view, misfit=misfit).p_value for misfit in (1.0, 2.0))
    assert doubted == pytest.approx(np.sqrt(plain))
    assert misfit_of(reference(rng, 2)) == 1.0  # two cannot be held against each other
