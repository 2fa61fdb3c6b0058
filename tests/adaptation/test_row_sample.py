"""Rows chosen by a hash: the same ones in any order, from any parts, with copies as often as they occur."""

import numpy as np
import pytest
from scipy import sparse

from sfboost.adaptation.row_sample import draw_rows, row_keys


def keys_of(stable, X):
    return row_keys(stable, X, np.full(len(stable), -1), np.ones(len(stable)))


def draw(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    second = rng.random(n_rows)
    return np.column_stack([1.0 - second, second]), rng.normal(size=(n_rows, 3))


def test_keys_are_spread_evenly_even_for_whole_numbers():
    numbers = np.arange(40_000.0)
    X = np.column_stack([numbers % 200, numbers // 200])
    keys = keys_of(np.full((len(X), 2), 0.5), X)
    assert len(np.unique(keys)) == len(X)
    shares = np.bincount((keys >> np.uint64(60)).astype(int), minlength=16) / len(X)
    assert abs(shares - 1 / 16).max() < 0.006


def test_sparse_and_dense_rows_have_one_key_and_so_have_both_zeros():
    stable, X = draw(50)
    X[X < 0.0] = 0.0
    signed = np.where(X == 0.0, -0.0, X)
    np.testing.assert_array_equal(keys_of(stable, X), keys_of(stable, sparse.csr_array(X)))
    np.testing.assert_array_equal(keys_of(stable, X), keys_of(stable, signed))


def test_the_last_bits_of_f_s_do_not_matter_and_the_others_do():
    stable, X = draw(5000)
    near, far = (np.clip(stable + step * np.array([-1.0, 1.0]), 0.0, 1.0) for step in (1e-16, 1e-4))
    np.testing.assert_array_equal(keys_of(stable, X), keys_of(near, X))
    assert (keys_of(stable, X) != keys_of(far, X)).mean() > 0.99


@pytest.mark.parametrize("n_distinct", [4, 5000])
def test_a_sample_of_copies_has_the_shares_of_the_table(n_distinct):
    rng = np.random.default_rng(0)
    stable, X = draw(n_distinct)
    X[:, 0] = np.arange(n_distinct) % 4
    rows = rng.choice(n_distinct, 40_000, p=rng.dirichlet(np.ones(n_distinct)))
    rows = rows[np.argsort(X[rows, 0], kind="stable")]  # sorted, as tables often are
    drawn = draw_rows(keys_of(stable, X)[rows], 4000)
    assert len(drawn) == 4000
    there = np.bincount(X[rows, 0].astype(int), minlength=4) / len(rows)
    here = np.bincount(X[rows[drawn], 0].astype(int), minlength=4) / len(drawn)
    assert abs(there - here).max() < 0.04
