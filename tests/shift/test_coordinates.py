"""Coordinates from sums: those of all domains less those of one are what the others teach by themselves."""

from dataclasses import fields

import numpy as np
import pytest

from sfboost.shift import DomainData
from sfboost.shift.coordinates import CommonUnits, MeaningCoordinates, MeaningSums


def domains(n_classes=3):
    """Sizes, units, row weights and class shares differ; a column varies in one domain, a class is in one."""
    rng = np.random.default_rng(0)
    views, labels = [], []
    for number, n in enumerate((400, 150, 60)):
        y = rng.integers(0, n_classes if number == 0 else n_classes - 1, n)
        stable, pooled = (rng.dirichlet(np.ones(n_classes), n) for _ in range(2))
        U = 1e3 + 10.0**number * rng.normal(size=(n, 4)) + y[:, None]
        U[:, 3] = rng.normal(size=n) if number == 0 else 7.0
        views.append(DomainData.of(stable, U, pooled, rng.normal(5.0, 0.1, (n, 2)), rng.random(n)))
        labels.append(y)
    return views, labels


def by_hand(views, labels):
    """Every definition as it reads, from the rows themselves."""
    view, y = DomainData.joined(views), np.concatenate(labels)
    w, U, X = view.weight, view.unstable, view.features
    centre, mean = w @ U, w @ X
    unit, spread = np.sqrt(w @ (U - centre) ** 2), np.sqrt(w @ (X - mean) ** 2)
    unit = np.where(unit > 1e-6, unit, 1.0)
    U, X = (U - centre) / unit, np.column_stack([(X - mean) / spread, np.ones(len(X))])
    classes = range(view.log_stable.shape[1])
    means = np.array(
        [np.average(U[y == k], axis=0, weights=w[y == k]) if (y == k).any() else 0 * U[0] for k in classes]
    )
    direction = means - means.mean(axis=0)
    length = np.linalg.norm(direction, axis=0)
    gram = X.T @ (w[:, None] * X)
    gram += 1e-3 * np.trace(gram) / len(gram) * np.eye(len(gram))
    return {
        "centre": centre,
        "unit": unit,
        "excess": np.maximum(w @ U**4, 1.0) - 3.0,
        "mean": mean,
        "spread": spread,
        "direction": direction / np.where(length > 1e-9, length, 1.0),
        "to_unstable": np.linalg.solve(gram, X.T @ (w[:, None] * U)),
    }


@pytest.mark.parametrize("out", [None, 0, 1, 2])
def test_sums_say_what_the_rows_say_also_without_one_domain(out):
    views, labels = domains()
    units, n = CommonUnits.of(DomainData.joined(views)), sum(map(len, labels))
    sums = [MeaningSums.of(view, y, units, len(y) / n) for view, y in zip(views, labels, strict=True)]
    every = sums[0] + sums[1] + sums[2]
    says = np.random.default_rng(1).normal(size=(4, 3))
    found = MeaningCoordinates.learn(every if out is None else every - sums[out], units, says)
    kept = [i for i in range(3) if i != out]
    expected = by_hand([views[i] for i in kept], [labels[i] for i in kept])
    expected["says"] = says / units.unit[:, None]  # the same steps, whoever is left out
    # Without the first domain its column is constant, and says nothing.
    columns = slice(None) if out != 0 else slice(0, 3)
    for name in (field.name for field in fields(found)):
        there, here = expected[name], getattr(found, name)
        if here.shape[-1] == 4:
            there, here = there[..., columns], here[..., columns]
        np.testing.assert_allclose(here, there, rtol=1e-7, atol=1e-9, err_msg=name)
    assert out != 0 or found.unit[3] == units.unit[3]


def test_the_evidence_is_the_linear_part_of_what_the_pooled_classifier_adds():
    rng = np.random.default_rng(0)
    U, X = rng.normal(3.0, 2.0, (20_000, 2)), rng.normal(size=(20_000, 3))
    part = np.column_stack([U @ [0.5, -1.0], U @ [-0.5, 1.0]])
    steps = rng.normal(size=(len(U), 1)) * [1.0, -1.0]  # what trees add to it from row to row
    stable = np.tile(np.log([0.5, 0.5]), (len(U), 1))
    view = DomainData(stable, U, part + steps, X, np.full(len(U), 1.0 / len(U)), np.zeros_like(part))
    units = CommonUnits.of(view)
    sums = MeaningSums.of(view, rng.integers(0, 2, len(U)), units, 1.0)
    coordinates = MeaningCoordinates.learn(sums, units, units.evidence(view))
    np.testing.assert_allclose(coordinates.says, [[0.5, -0.5], [-1.0, 1.0]], atol=0.03)
    found = coordinates.evidence(coordinates.standardised(view))
    np.testing.assert_allclose(found, part - part.mean(axis=0), atol=0.3)
    assert abs(np.corrcoef(found[:, 0], steps[:, 0])[0, 1]) < 0.02
