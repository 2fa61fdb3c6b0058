"""What held-out rows say about f_S, and that it is heard before f_S is trusted."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

import sfboost  # noqa: E402
from sfboost.boosting import performance_without_labels  # noqa: E402
from sfboost.torch import Plan, SFBClassifier  # noqa: E402
from sfboost.torch.verification import verify  # noqa: E402


def _rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    y, domain = rng.integers(0, 2, n), np.where(np.arange(n) < n // 2, "a", "b")
    colour = np.where(rng.random(n) < np.where(domain == "a", 0.9, 0.8), y, 1 - y)
    shape = np.where(rng.random(n) < 0.75, y, 1 - y)
    return y, domain, colour, shape


def _proba(seen, p=0.75):
    return np.where(np.eye(2)[seen] == 1, p, 1 - p)


def test_accuracies_are_those_of_the_rows_where_the_unstable_feature_is_right_and_wrong():
    y, domain, colour, shape = _rows()
    found = verify(_proba(shape), colour[:, None].astype(float), y, domain)
    by_class = [
        np.mean([(shape == y)[(y == c) & ((colour == y) == right)].mean() for c in (0, 1)])
        for right in (True, False)
    ]
    np.testing.assert_allclose([found.accuracy_right, found.accuracy_wrong], by_class, atol=0.005)
    assert found.stable


def test_the_risk_is_given_by_domain():
    y, domain, colour, _ = _rows()
    found = verify(_proba(colour, 0.85), colour[:, None].astype(float), y, domain)
    losses = -np.log(_proba(colour, 0.85)[np.arange(len(y)), y])
    assert found.domains == ("a", "b")
    np.testing.assert_allclose(found.risk, [losses[domain == name].mean() for name in "ab"])
    assert not found.stable
    assert "not the same in all domains" in found.reason
    assert str(found).endswith(found.reason)


def test_an_f_s_that_never_names_a_rare_class_does_not_hide_what_it_reads():
    rng, n, rare = np.random.default_rng(0), 20_000, 0.1
    y, domain = (rng.random(n) < rare).astype(int), np.where(np.arange(n) < n // 2, "a", "b")
    colour = np.where(rng.random(n) < np.where(domain == "a", 0.9, 0.8), y, 1 - y)
    shape = np.where(rng.random(n) < 0.75, y, 1 - y)
    seen = {"shape": shape, "both": np.where(rng.random(n) < 0.3, colour, shape)}
    found = {}
    for name, read in seen.items():
        proba = np.array([y[read == k].mean() for k in (0, 1)])[read]
        assert proba.max() < 0.5
        found[name] = verify(np.c_[1 - proba, proba], colour[:, None].astype(float), y, domain)
    assert found["shape"].stable
    assert found["shape"].accuracy_right == pytest.approx(0.75, abs=0.02)
    assert not found["both"].stable
    assert found["both"].gap == pytest.approx(0.3, abs=0.05)


def test_too_few_rows_show_nothing():
    y, domain, _, shape = _rows(400)
    found = verify(_proba(shape), y[:, None].astype(float), y, domain)  # Φ_U is never wrong
    assert not found.stable
    assert found.reason.startswith("what Φ_U suggests is wrong in 0 held-out training rows")


def test_an_f_s_that_reads_the_unstable_feature_teaches_nothing_and_that_is_the_reason():
    rng = np.random.default_rng(0)

    def draw(agreement, n=500):
        y = rng.integers(0, 2, n)
        right = rng.random((n, 2)) < [0.75, agreement]
        return np.where(right, y[:, None], 1 - y[:, None]) * 2.0 - 1.0, y

    (X1, y1), (X2, y2), (X, y) = draw(0.9), draw(0.8), draw(0.1)
    plan = Plan(
        steps=150,
        unstable_steps=20,
        balance=False,
        min_gain=-9.0,
        learning_rate=0.03,
        validation_fraction=0.5,
    )
    model = SFBClassifier("linear", penalty="none", plan=plan)
    model.fit(np.r_[X1, X2], np.r_[y1, y2], sample_domain=np.repeat([0, 1], 500))
    assert model.score(X, y) < 0.4
    best = model.adapt(X)
    assert not {"boosted", "realigned"} & set(best.weights_)  # such an f_S teaches nothing
    assert model.verification_.reason in str(best.reason_)
    foretold = performance_without_labels(best, X)
    assert {name: bool(one.value) for name, one in foretold.items()} == dict.fromkeys(foretold, False)
    assert model.verification_.reason in foretold["stable"].withheld


def test_a_network_is_verified_once_after_each_fit_and_anew_from_a_file(tmp_path, monkeypatch):
    counted = []

    def counting(*args, **options):
        counted.append(args)
        return verify(*args, **options)

    y, domain, colour, shape = _rows(400)
    X = np.column_stack([shape, colour]) * 2.0 - 1.0
    plan = Plan(steps=2, unstable_steps=2, min_gain=-9.0, validation_fraction=0.5)
    model = SFBClassifier("linear", plan=plan).fit(X, y, sample_domain=domain)
    monkeypatch.setattr("sfboost.torch.predictor.verify", counting)
    for _ in "ab":
        model.adapt(X)
    assert len(counted) == 1
    model.save(tmp_path / "model.sfb")
    loaded = sfboost.load(tmp_path / "model.sfb")
    assert loaded.verification_.reason == model.verification_.reason
    assert len(counted) == 2
    model.fit(1.0 - X, y, sample_domain=domain)
    assert model.verification_ is model.verification_
    assert len(counted) == 3


def test_a_domain_in_which_f_s_is_wrong_about_itself_contradicts_it_whatever_the_unstable_feature():
    y, domain, colour, shape = _rows()
    nothing = np.random.default_rng(1).normal(size=(len(y), 1))
    assert not verify(_proba(colour, 0.85), nothing, y, domain).same_in_all_domains
    assert verify(_proba(shape), nothing, y, domain).same_in_all_domains


def test_domains_that_hardly_differ_do_not_show_which_feature_is_the_stable_one():
    rng, n = np.random.default_rng(2), 3000
    y, domain = rng.integers(0, 2, n), np.repeat(["a", "b"], n // 2)
    colour, shape = (np.where(rng.random(n) < often, y, 1 - y) for often in (0.85, 0.75))
    for f_s, phi_u in ((shape, colour), (colour, shape)):  # nothing tells them apart
        found = verify(_proba(f_s, (f_s == y).mean()), phi_u[:, None].astype(float), y, domain)
        assert found.same_in_all_domains
        assert found.gap + 1.64 * found.gap_error < 0.2
        assert not found.domains_differ
        assert not found.stable
        assert "hardly differ" in found.reason
    y, domain, colour, shape = _rows()
    assert verify(_proba(shape), colour[:, None].astype(float), y, domain).domains_differ


def test_an_f_s_that_says_nothing_where_the_unstable_feature_says_nothing_is_not_shown_to_be_stable():
    y, domain, colour, shape = _rows()
    noise = np.random.default_rng(1).integers(0, 2, len(y))
    faint = verify(_proba(noise, 0.51), colour[:, None].astype(float), y, domain)
    assert faint.domains_differ
    assert faint.gap + 1.64 * faint.gap_error < 0.2
    assert not faint.stable
    assert "not shown to say anything by itself" in faint.reason
    said = verify(_proba(shape), colour[:, None].astype(float), y, domain)
    # A channel that is right three times in four, in nats.
    assert said.gain == pytest.approx(np.log(2) + 0.75 * np.log(0.75) + 0.25 * np.log(0.25), abs=0.03)
