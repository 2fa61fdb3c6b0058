"""Every listed trainer and adapter keeps its contract, with two classes and with five."""

from contextlib import contextmanager
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from sfboost.datasets import Dataset, Domain
from sfboost_lab.baselines import ADAPTERS, TRAINERS, LabelledRows, contract
from sfboost_lab.baselines.harness import Cached, adapt, domain_rows, fit, run
from sfboost_lab.baselines.pooled import EstimatorPredictor, PooledTrainer
from sfboost_lab.datasets import load

_BRIEF = {"network": "small", "pretrain_steps": 2, "steps": 4, "learning_rate": 0.05}
_BOOSTED = {"network": "small", "steps": 8, "unstable_steps": 8, "learning_rate": 0.05, "max_restarts": 0}
BRIEF = {
    "actir": {"n_features": 6, "steps": 4},
    "sfb": _BOOSTED,
    "sfb-searched": {"budget": 1},
    "sfb-paper": {"network": "small", "steps": 10, "n_stable": 2, "n_unstable": 2, "learning_rate": 0.05},
    "sfb-columns": {"stable": [0, 1, 2]},
    **{name: {} for name in ("pooled", "left-out-linear")},
}
#: Who makes the predictors for adapters that need a certain kind.
MAKERS = {
    "pl-all": ("erm", _BRIEF),
    "dare": ("dare", _BRIEF),
    "sfb-best": ("sfb-columns", {"stable": [0, 1, 2]}),
}


def example(n_classes):
    """Three stable columns, and three whose class means are those of other classes in the test domain."""
    rng = np.random.default_rng([0, n_classes])
    stable, unstable = rng.normal(size=(n_classes, 3)), 2.0 * rng.normal(size=(n_classes, 3))
    domains = []
    for shift, name in enumerate(("first", "second", "test")):
        y = np.arange(120) % n_classes
        means = np.hstack([stable[y], np.roll(unstable, shift // 2, axis=0)[y] * (1.0 - 0.5 * (shift == 1))])
        X = means + rng.normal(size=(len(y), 6)) * (1.0 + 0.5 * shift)
        X.setflags(write=False)  # whoever writes to its rows fails
        y.setflags(write=False)
        domains.append(Domain(name, X, y))
    return Dataset(
        "example",
        tuple(domains),
        ("first", "second"),
        ("test",),
        classes=tuple(range(n_classes)),
        stable_features=[0, 1, 2],
        unstable_features=[3, 4, 5],
    )


EXAMPLES = tuple(map(example, (2, 5)))


def named_rows(dataset):
    """The training rows with words for labels."""
    X, y, domain = dataset.pooled("train")
    return LabelledRows(X, np.array([f"class {k}" for k in dataset.classes])[y], domain)


@contextmanager
def global_state_kept():
    """The random states that the whole program shares are as before."""
    import torch

    def state():
        _, key, *rest = np.random.get_state()  # the key alone changes once in 624 draws
        return key.tobytes(), *rest, torch.get_rng_state().numpy().tobytes()

    before = state()
    yield
    assert state() == before


def check_predictor(predictor, X, classes):
    """Probabilities are sound, a row alone gets the same ones, and the head is the last layer."""
    proba = predictor.predict_proba(X)
    assert list(predictor.classes_) == list(classes)
    assert proba.shape == (len(X), len(classes))
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(predictor.predict(X), predictor.classes_[proba.argmax(axis=1)])
    for i in (0, 1, len(X) - 1):  # a network computes one row and many with other rounding
        np.testing.assert_allclose(predictor.predict_proba(X[i : i + 1])[0], proba[i], 1e-4, 1e-6)
    features = predictor.features(X)
    assert (features.ndim, len(features)) == (2, len(X))
    if predictor.head is not None:
        assert predictor.head.coef.shape[0] == len(classes)
        np.testing.assert_allclose(predictor.head.proba(features), proba, 1e-4, 1e-6)


def check_trainer(trainer):
    assert trainer.title
    for dataset in EXAMPLES:
        X = dataset.domain("test").X
        with global_state_kept():
            predictor = fit(trainer, dataset, seed=3)
            proba = predictor.predict_proba(X)
        np.testing.assert_array_equal(fit(trainer, dataset, seed=3).predict_proba(X), proba)
        check_predictor(predictor, X, dataset.classes)
        rows = named_rows(dataset)
        check_predictor(trainer.fit(rows, seed=0), X, np.unique(rows.y))


def check_adapter(adapter, trainer):
    assert adapter.title
    assert adapter.test_access in get_args(contract.TestAccess)
    for dataset in EXAMPLES:
        source, domain = fit(trainer, dataset, seed=0), dataset.domain("test")
        rows = domain_rows(domain, adapter.test_access, seed=0)
        X = rows.scored.X
        before = source.predict_proba(X).copy()
        with global_state_kept():
            adapted = adapt(source, adapter, rows, seed=3)
            proba = adapted.predict_proba(X)
        assert adapter.test_access == "none" or adapted is not source
        np.testing.assert_array_equal(source.predict_proba(X), before)
        np.testing.assert_array_equal(adapt(source, adapter, rows, seed=3).predict_proba(X), proba)
        check_predictor(adapted, X, source.classes_)
        if adapter.head_only:
            shown, y = (rows.seen, np.searchsorted(source.classes_, rows.seen.y))
            if adapter.test_access != "labelled":
                shown, y = rows.scored, None
            head = adapter.adapt_features(source.head, source.features(shown.X), y, seed=3)
            np.testing.assert_array_equal(head.coef, adapted.head.coef)
        if adapter.test_access != "labelled":
            other = replace(domain, y=np.random.default_rng(1).permutation(domain.y))
            unlike = adapt(source, adapter, domain_rows(other, adapter.test_access, seed=0), seed=3)
            np.testing.assert_array_equal(unlike.predict_proba(X), proba)


refusals = pytest.mark.filterwarnings(
    "ignore::sfboost.adaptation.AdaptationRefused", "ignore::sfboost.adaptation.AdaptationWarning"
)
brief_training = pytest.mark.filterwarnings("ignore:In 1 starts")


# Those that search, or play own domains, take many seconds.
SLOW = ("sfb", "sfb-searched", "sfb-paper", "sfb-columns")


@brief_training
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in TRAINERS],
)
def test_every_trainer_keeps_the_contract(name):
    trainer = TRAINERS[name](**BRIEF.get(name, _BRIEF))
    assert trainer.name == name
    check_trainer(trainer)


@refusals
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (name == "sfb-best"))
        for name in ADAPTERS
        if name not in ("sfb-leak", "sfb-flat")
    ],
)
def test_every_adapter_keeps_the_contract(name):
    maker, options = MAKERS.get(name, ("pooled", {}))
    adapter = ADAPTERS[name]()
    assert adapter.name == name
    check_adapter(adapter, TRAINERS[maker](**options))


@refusals
@brief_training
@pytest.mark.parametrize(
    ("maker", "name"),
    [
        *(("irm", name) for name in ("pl-last", "t3a", "tent", "shot", "sfb", "sfb-labels", "fine-tune")),
        *(pytest.param("sfb", name, marks=pytest.mark.long) for name in ("sfb", "t3a", "sfb-paper")),
        pytest.param("sfb-searched", "sfb-best", marks=pytest.mark.long),
    ],
)
def test_adapters_take_predictors_of_any_trainer(maker, name):
    check_adapter(ADAPTERS[name](), TRAINERS[maker](**BRIEF.get(maker, _BRIEF)))


# -- the harness ---------------------------------------------------------------------------------------------


def test_labels_that_were_shown_are_not_scored():
    domain = Domain("new", np.arange(101.0)[:, None], np.arange(101) % 2)
    rows = domain_rows(domain, "labelled", seed=0)
    seen, scored = set(rows.seen.X[:, 0]), set(rows.scored.X[:, 0])
    assert (len(seen), len(scored)) == (50, 51)
    assert not seen & scored
    np.testing.assert_array_equal(rows.seen.y, rows.seen.X[:, 0] % 2)


def test_rows_without_a_label_are_not_scored():
    domain = Domain("new", np.arange(4.0)[:, None], np.array([0, -1, 1, -1]))
    assert domain_rows(domain, "unlabelled", seed=0).scored.X.ravel().tolist() == [0.0, 2.0]


def test_one_forward_pass_serves_every_adapter(monkeypatch):
    calls = []
    honest = EstimatorPredictor.features

    def counted(self, X):
        calls.append(len(X))
        return honest(self, X)

    monkeypatch.setattr(EstimatorPredictor, "features", counted)
    adapters = [ADAPTERS[name]() for name in ("pl-last", "t3a", "tent", "shot")]
    outcomes = run(PooledTrainer(), adapters, load("ac", n_rows=64))
    assert [o.adapter for o in outcomes] == ["pl-last", "t3a", "tent", "shot"]
    assert calls == [64]


def test_a_cached_predictor_computes_other_rows_as_usual():
    ac = load("ac", n_rows=64)
    predictor = fit(PooledTrainer(), ac)
    X, other = ac.domain("test-0.1").X, ac.domain("train-0.7").X
    cached = Cached(predictor, X)
    cached.predict_proba(X)
    np.testing.assert_array_equal(cached.predict_proba(other), predictor.predict_proba(other))
    np.testing.assert_array_equal(cached.predict(X), predictor.predict(X))


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(KeyError, match=r"No adapter 't3b'\. Did you mean 't3a'"):
        ADAPTERS["t3b"]


def test_a_setting_that_no_one_published_is_refused_by_name():
    with pytest.raises(
        ValueError, match=r"No published setting 'colored_mnst'\. Did you mean 'colored_mnist'"
    ):
        TRAINERS["sfb"].preset("colored_mnst")
    for kind in (TRAINERS["pooled"], ADAPTERS["t3a"]):
        with pytest.raises(ValueError, match="No published setting 'nope'"):
            kind.preset("nope")
        assert kind.preset("ac") == kind()  # a known setting without values of its own


def test_a_family_that_does_not_exist_has_no_published_values():
    from sfboost_lab.baselines.learned.generalisation import published

    with pytest.raises(ValueError, match="No synthetic family"):
        published(nope={"steps": 1})
