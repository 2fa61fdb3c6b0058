"""The penalty chosen by cross-fitted likelihood depends on the rows, not on their order in the table."""

import numpy as np
import pytest
from scipy import sparse

from sfboost import Settings
from sfboost.adaptation import adapt, regularisation
from sfboost.adaptation.fitting import fit_unstable
from sfboost.marginal import log_likelihood_rows, log_weights


def draw(n_rows, n_classes=4, seed=0):
    """Gaussian classes in both kinds of features, f_S exact: ℓ is rather flat in the penalty."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    means = rng.normal(size=(n_classes, 2))
    x = means[y] + rng.normal(size=(n_rows, 2))
    f = np.exp(-0.5 * ((x[:, None] - means) ** 2).sum(axis=2))
    X = 1.5 * rng.normal(size=(n_classes, 4))[y] + rng.normal(size=(n_rows, 4))
    return f / f.sum(axis=1, keepdims=True), X


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_a_table_and_the_same_table_in_another_order_get_one_penalty(seed, container):
    stable, X = draw(600, seed=seed)
    order = np.random.default_rng(seed).permutation(len(X))
    here = adapt(stable, container(X), refuse=False)
    there = adapt(stable[order], container(X[order]), refuse=False)
    assert here.cross_fit.l2 == there.cross_fit.l2
    np.testing.assert_allclose(here.cross_fit.gains, there.cross_fit.gains, atol=1e-9)
    np.testing.assert_allclose(here.predict_proba(stable, X), there.predict_proba(stable, X), atol=1e-3)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_the_gain_is_that_of_rows_that_a_head_did_not_see(container, monkeypatch):
    stable, X = draw(601)
    X[:, 0] = np.arange(601.0) / 601
    fits = []

    def remember(problem, *args, **kwargs):
        fits.append((problem.X, fit_unstable(problem, *args, **kwargs)))
        return fits[-1][1]

    monkeypatch.setattr(regularisation, "fit_unstable", remember)
    cross = adapt(stable, container(X), refuse=False, settings=Settings(l2=0.1, standardize=False)).cross_fit
    evidence = log_weights(stable, stable.mean(axis=0))
    scores, times_left_out = np.zeros(601), np.zeros(601)
    for rows, model in fits:
        seen = rows.toarray() if sparse.issparse(rows) else rows
        unseen = ~np.isin(X[:, 0], seen[:, 0])
        scores[unseen] = log_likelihood_rows(model.log_proba(X[unseen]), evidence[unseen])
        times_left_out += unseen
    np.testing.assert_array_equal(times_left_out, 1)
    assert cross.gain == pytest.approx(scores.mean(), abs=1e-12)


def test_the_chosen_penalty_counts_a_weighted_row_as_one_observation():
    """Only ratios of weights matter; unequal ones make the rows worth (Σw)² / Σw², copies make them more."""
    stable, X = draw(600)
    weight = np.random.default_rng(0).integers(1, 4, 600)
    rows = np.repeat(np.arange(600), weight)
    chosen = [adapt(stable, X, sample_weight=w, refuse=False).cross_fit for w in (weight, 10.0 * weight)]
    assert chosen[0].l2 == pytest.approx(chosen[1].l2)
    unweighted, equal = (
        adapt(stable, X, sample_weight=w, refuse=False).cross_fit for w in (None, np.full(600, 3))
    )
    assert unweighted.l2 == equal.l2
    assert chosen[0].n_rows == 600
    assert adapt(stable[rows], X[rows], refuse=False).cross_fit.n_rows == weight.sum()
