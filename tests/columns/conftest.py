"""Synthetic training domains with known stable columns, as the fixture `families`."""

from types import SimpleNamespace

import numpy as np
import pytest


def _rows(parts):
    X, y = zip(*parts, strict=True)
    return np.vstack(X), np.concatenate(y), np.repeat(np.arange(len(y)), [len(part) for part in y])


def _softmax_draw(logits, rng):
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    return (rng.random(len(logits))[:, None] > proba.cumsum(axis=1)).sum(axis=1).clip(0, logits.shape[1] - 1)


def anticausal_coins(rng, n=1024, agreements=(0.95, 0.7)):
    """AC: column 0 agrees with the label three times in four, column 1 as the domain says."""
    parts = []
    for agreement in agreements:
        y = rng.integers(0, 2, n)
        columns = [np.where(rng.random(n) < p, y, 1 - y) for p in (0.75, agreement)]
        parts.append((np.column_stack(columns).astype(float), y))
    return _rows(parts)


def gaussian_effects(rng, n=1000, n_classes=2, n_domains=3, noise=1, priors=None):
    """Columns 0-2 are stable effects, 3-5 effects whose slope depends on the domain, the rest noise."""
    means = np.linspace(-1.0, 1.0, n_classes)
    parts = []
    for e in range(n_domains):
        prior = np.full(n_classes, 1.0 / n_classes) if priors is None else np.asarray(priors[e])
        y = rng.choice(n_classes, n, p=prior)
        slopes = [0.8, -1.0, 1.2, *np.linspace(1.3, -0.8, n_domains)[[e, -1 - e, (e + 1) % n_domains]]]
        effects = [slope * means[y] + rng.standard_normal(n) for slope in slopes]
        parts.append((np.column_stack([*effects, rng.standard_normal((n, noise))]), y))
    return _rows(parts)


def shifting_causes(rng, n=1500, n_classes=2, shift=0.6):
    """Columns 0 and 1 are causes that both shift: stable together, not alone; column 2 is unstable."""
    parts = []
    for e in range(2):
        causes = rng.standard_normal((n, 2)) + shift * e
        weights = np.linspace(-0.9, 0.9, n_classes)
        y = _softmax_draw(causes.sum(axis=1, keepdims=True) * weights - 0.6 * weights, rng)
        effect = (1.2 - 1.8 * e) * np.linspace(-1, 1, n_classes)[y] + rng.standard_normal(n)
        parts.append((np.column_stack([causes, effect]), y))
    return _rows(parts)


def spouse(rng, n=6000):
    """Column 0 is an effect of Y and of column 1, which shifts; stable together. Column 2 is unstable."""
    parts = []
    for e in range(2):
        y = rng.integers(0, 2, n)
        other = rng.standard_normal(n) + e
        effect = 1.5 * y + other + rng.standard_normal(n)
        parts.append((np.column_stack([effect, other, (1 - 2 * e) * y + rng.standard_normal(n)]), y))
    return _rows(parts)


def cause_effect_coins(rng, n=1024, agreements=(0.95, 0.8)):
    """CE-DD raw: column 1 alone says nothing; with column 0 it says all, but differently by domain."""
    parts = []
    for agreement in agreements:
        cause = rng.integers(0, 2, n)
        y = np.where(rng.random(n) < 0.75, cause, 1 - cause)
        seen = np.where(rng.random(n) < agreement, y, 1 - y) ^ cause
        parts.append((np.column_stack([cause, seen]).astype(float), y))
    return _rows(parts)


@pytest.fixture(scope="session")
def families():
    return SimpleNamespace(
        anticausal_coins=anticausal_coins,
        cause_effect_coins=cause_effect_coins,
        gaussian_effects=gaussian_effects,
        shifting_causes=shifting_causes,
        spouse=spouse,
    )
