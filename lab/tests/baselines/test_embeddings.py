"""Embeddings without known stable columns: clusters that lie elsewhere in every domain."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict

from sfboost.calibration import fit_temperature
from sfboost_lab.baselines import LabelledRows
from sfboost_lab.baselines.embeddings import LeftOutLinear, SFBComponents

_CLASSES = np.array(["cat", "dog", "elk"])


def _domains(n_rows: int, *, shift: float = 1.2, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Four domains: three common centres in 40 columns, which every domain moves in its own way."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, 40)) / 2
    made = []
    for _ in range(4):
        own = centres + shift * rng.normal(size=(3, 40)) / 2
        y = rng.integers(0, 3, n_rows)
        made.append((own[y] + rng.normal(size=(n_rows, 40)) * 0.7, _CLASSES[y]))
    return made


def _split(n_rows: int = 900, **options: float) -> tuple[LabelledRows, np.ndarray, np.ndarray]:
    *known, (X, y) = _domains(n_rows, **options)
    domain = np.repeat(["a", "b", "c"], n_rows)
    train = LabelledRows(np.concatenate([d[0] for d in known]), np.concatenate([d[1] for d in known]), domain)
    return train, X, y


def test_temperature_is_that_of_left_out_predictions() -> None:
    train, X, _ = _split()
    plain = LogisticRegression(C=0.01, max_iter=1000)
    seen = cross_val_predict(
        plain, train.X, train.y, groups=train.domain, cv=LeaveOneGroupOut(), method="predict_log_proba"
    )
    codes = np.searchsorted(_CLASSES, train.y)
    scaling = fit_temperature(seen, codes, domain=train.domain)
    expected = np.exp(scaling.apply(plain.fit(train.X, train.y).predict_log_proba(X)))
    np.testing.assert_allclose(LeftOutLinear().fit(train).predict_proba(X), expected, atol=1e-6)


def test_it_errs_less_in_a_new_domain() -> None:
    losses = []
    for seed in range(4):
        train, X, y = _split(shift=1.6, seed=seed)
        plain = LogisticRegression(C=0.01, max_iter=1000).fit(train.X, train.y)
        losses.append([log_loss(y, m.predict_proba(X)) for m in (plain, LeftOutLinear().fit(train))])
    before, after = np.mean(losses, axis=0)
    assert after < before - 0.03


def test_one_domain_is_refused() -> None:
    train, _, _ = _split(30)
    with pytest.raises(ValueError, match="two or more"):
        LeftOutLinear().fit(LabelledRows(train.X, train.y, np.repeat("a", len(train))))


def test_a_class_of_one_domain_alone_does_not_decide_the_temperature() -> None:
    train, X, _ = _split()
    only_here = (train.y != "elk") | (train.domain == "a")
    rare = LabelledRows(train.X[only_here], train.y[only_here], train.domain[only_here])
    confidence = LeftOutLinear().fit(rare).predict_proba(X).max(axis=1).mean()
    assert confidence > 0.6  # judged by the rows of "elk", it would be near 1/3


def test_domains_of_one_class_each_are_not_calibrated() -> None:
    X, y, domain = np.eye(2).repeat(5, axis=0), np.repeat([0, 1], 5), np.repeat(["a", "b"], 5)
    fitted = LeftOutLinear(C=1.0).fit(LabelledRows(X, y, domain))
    np.testing.assert_allclose(fitted.predict_proba(X), LogisticRegression().fit(X, y).predict_proba(X))


@pytest.mark.parametrize("seed", range(4))
def test_components_find_where_the_clusters_are_now(seed: int) -> None:
    train, X, y = _split(shift=1.6, seed=seed)
    stable = LeftOutLinear().fit(train)
    given = X.copy()
    adapted = SFBComponents(n_components=4).adapt(stable, X)
    np.testing.assert_array_equal(X, given)
    before, after = np.mean(stable.predict(X) == y), np.mean(adapted.predict(X) == y)
    assert after > before + 0.04


def test_too_few_rows_change_nothing() -> None:
    train, X, _ = _split()
    stable = LeftOutLinear().fit(train)
    with pytest.warns(UserWarning, match="kept"):
        adapted = SFBComponents().adapt(stable, X[:5])
    np.testing.assert_allclose(adapted.predict_proba(X), stable.predict_proba(X), atol=1e-9)


def test_images_are_rows() -> None:
    train, X, _ = _split(200)
    flat = LeftOutLinear().fit(train)
    image = LeftOutLinear().fit(LabelledRows(train.X.reshape(-1, 5, 8), train.y, train.domain))
    np.testing.assert_allclose(
        SFBComponents(force=True).adapt(image, X.reshape(-1, 5, 8)).predict_proba(X.reshape(-1, 5, 8)),
        SFBComponents(force=True).adapt(flat, X).predict_proba(X),
        atol=1e-9,
    )
