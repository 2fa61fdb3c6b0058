import numpy as np
import pytest

from sfboost_lab.datasets import load
from sfboost_lab.datasets.synthetic import (
    FAMILIES,
    anti_causal,
    cause_effect_direct,
    family,
    multiclass_anti_causal,
)

FINITE = [name for name in FAMILIES if name != "gaussian"]


def conditional(made, domain, columns):
    """Pr[Y | the columns], one row per value of the columns, in their sorted order."""
    _, cell = np.unique(made.cells[:, columns], axis=0, return_inverse=True)
    joint = np.zeros((cell.max() + 1, made.masses(domain).shape[1]))
    np.add.at(joint, cell.ravel(), made.masses(domain))
    return joint / joint.sum(axis=1, keepdims=True)


def dependence_given_label(made, domain, first, second):
    """Largest |Pr[a, b | y] - Pr[a | y] Pr[b | y]| over the values of two groups of columns."""
    a = np.unique(made.cells[:, first], axis=0, return_inverse=True)[1].ravel()
    b = np.unique(made.cells[:, second], axis=0, return_inverse=True)[1].ravel()
    largest = 0.0
    for mass in made.masses(domain).T:
        table = np.zeros((a.max() + 1, b.max() + 1))
        np.add.at(table, (a, b), mass / mass.sum())
        largest = max(largest, np.abs(table - np.outer(table.sum(1), table.sum(0))).max())
    return largest


@pytest.mark.parametrize("name", FINITE)
def test_the_stable_columns_predict_the_same_in_every_domain(name):
    made = family(name)
    first, *others = [conditional(made, s.name, made.groups["stable"]) for s in made.settings]
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-12)


@pytest.mark.parametrize("name", FINITE)
def test_only_what_is_called_complementary_is(name):
    made = family(name)
    for setting in made.settings:
        for group, columns in made.groups.items():
            if group == "complementary":
                assert dependence_given_label(made, setting.name, made.groups["stable"], columns) < 1e-12
            if group == "non_complementary":
                assert dependence_given_label(made, setting.name, made.groups["stable"], columns) > 0.01


@pytest.mark.parametrize("name", FINITE)
def test_drawn_rows_follow_the_exact_table(name):
    made, n_rows = family(name), 20_000
    for domain in made.sample(n_rows, random_state=4).domains:
        matches = (domain.X[:, None, :] == made.cells).all(axis=2)
        assert (matches.sum(axis=1) == 1).all()
        counts = np.zeros_like(made.masses(domain.name))
        np.add.at(counts, (matches.argmax(axis=1), domain.y), 1)
        expected = made.masses(domain.name)
        error = 5 * np.sqrt(expected * (1 - expected) / n_rows)
        assert (np.abs(counts / n_rows - expected) <= error + 1e-12).all()


@pytest.mark.parametrize("name", list(FAMILIES))
def test_same_seed_same_rows_and_a_larger_draw_begins_with_the_smaller(name):
    small, large = load(name, n_rows=7, random_state=5), load(name, n_rows=50, random_state=5)
    other = load(name, n_rows=50, random_state=6)
    for a, b, c in zip(small.domains, large.domains, other.domains, strict=True):
        assert (len(a), len(b)) == (7, 50)
        # Matrix products of other sizes may round the last bit differently.
        np.testing.assert_allclose(a.X, b.X[:7], rtol=1e-14)
        np.testing.assert_array_equal(a.y, b.y[:7])
        assert not np.array_equal(b.X, c.X)


def test_a_domain_does_not_change_when_others_are_added():
    alone = anti_causal(train=[0.9], validate=[], test=[0.1]).sample(20)
    among = anti_causal(train=[0.9, 0.7, 0.6], test=[0.3, 0.1]).sample(20)
    np.testing.assert_array_equal(alone.domain("test-0.1").X, among.domain("test-0.1").X)


def test_two_domains_of_one_agreement_are_two_draws():
    first, second = anti_causal(train=[0.9, 0.9]).sample(200).domains[:2]
    assert (first.name, second.name) == ("train-0.9", "train-0.9-2")
    assert not np.array_equal(first.X, second.X)


def test_ac_has_the_papers_domains_and_ceilings():
    ac = anti_causal()
    assert [s.name for s in ac.settings] == ["train-0.95", "train-0.7", "validate-0.6", "test-0.1"]
    assert [ac.ceiling(s.name) for s in ac.settings] == [0.95, 0.75, 0.75, 0.9]
    assert {ac.ceiling(s.name, "stable") for s in ac.settings} == {0.75}
    assert np.unique(ac.cells).tolist() == [-1, 1]


def test_ce_dd_is_drawn_as_the_peers_draw_it():
    ce_dd = cause_effect_direct()
    assert [ce_dd.ceiling(s.name) for s in ce_dd.settings] == [0.95, 0.8, 0.8, 0.9]
    assert {ce_dd.ceiling(s.name, "stable") for s in ce_dd.settings} == {0.75}
    assert {ce_dd.ceiling(s.name, "unstable") for s in ce_dd.settings} == {0.5}
    rng, beta = np.random.default_rng(0), 0.1
    expected = ce_dd.masses("test-0.1")
    x_s = rng.integers(0, 2, 200_000)
    y = 1 - np.abs(x_s - (rng.random(len(x_s)) < 0.75))
    x_u = 1 - np.abs(1 - np.abs(y - (rng.random(len(x_s)) < beta)) - x_s)
    for (stable, unstable), row in zip(ce_dd.cells, expected, strict=True):
        for label in (0, 1):
            share = np.mean((x_s == stable) & (x_u == unstable) & (y == label))
            assert share == pytest.approx(row[label], abs=0.005)


def test_ce_dd_is_complementary_once_the_combination_is_a_column():
    made = cause_effect_direct(with_combination=True)
    for setting in made.settings:
        assert dependence_given_label(made, setting.name, [0], [2]) < 1e-12
        strength = made.ceiling(setting.name, "complementary")
        assert strength == max(setting.dials["agreement"], 1 - setting.dials["agreement"])


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_multiclass_ac_takes_any_number_of_classes(n_classes):
    made = multiclass_anti_causal(n_classes=n_classes, test=[{"agreement": 0.1, "shift": 1}, 0.02])
    assert made.ceiling("test-0.1", "unstable") == pytest.approx(0.9)
    rows = made.sample(30)
    assert rows.classes == tuple(range(n_classes))
    assert rows.domain("test-0.02").X.shape == (30, 2 * n_classes)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: anti_causal(train=[1.5]), "agreement=1.5"),
        (lambda: anti_causal(train=[{"colour": 1}]), "the dials are"),
        (lambda: anti_causal(stable_accuracy=2), "stable_accuracy=2"),
        (lambda: anti_causal().sample(0), "n_rows=0"),
        (lambda: anti_causal().ceiling("test-0.1", "colour"), "give one of stable"),
        (lambda: multiclass_anti_causal(n_classes=1), "n_classes=1"),
    ],
)
def test_a_wrong_parameter_is_answered_by_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_an_unknown_family_or_domain_is_answered_with_the_known_ones():
    with pytest.raises(KeyError, match="there are ac, ce_dd"):
        family("acc")
    with pytest.raises(KeyError, match=r"it has train-0\.95"):
        anti_causal().ceiling("test")
    with pytest.raises(KeyError, match=r"it has train-0\.95"):
        family("gaussian").moments("test")
