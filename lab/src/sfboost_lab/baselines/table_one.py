"""The paper's Table 1, measured: which parts of X a system uses, whether it is robust, what it asks for.

Data are the family `three_parts` with three columns of each part: stable, complementary, and neither (with
one column each, the best guess would follow the strongest alone). A part counts as used if permuting its
columns within a domain like the training ones costs more than 3 standard errors of accuracy. A system is
robust if it loses less than 5 points where the unstable columns are reversed.

Penalty weights are chosen blind: of the candidates that know something, the one whose accuracy differs least
between fresh rows of the training domains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfboost.datasets.contract import Dataset, Domain
from sfboost_lab.baselines.contract import Predictor, TestAccess, Trainer
from sfboost_lab.baselines.harness import DomainRows, adapt, domain_rows, fit
from sfboost_lab.baselines.registry import ADAPTERS, TRAINERS
from sfboost_lab.datasets.synthetic import family

PARTS = ("stable", "complementary", "non_complementary")
USED_FROM = 3.0
ROBUST_BELOW = 5.0
N_COPIES = 3
TRAIN = ({"agreement": 0.95, "shortcut": 0.95}, {"agreement": 0.65, "shortcut": 0.65})
#: Mirror images: what adapts to one can do as well in the other.
TEST = ({"agreement": 0.8, "shortcut": 0.8}, {"agreement": 0.2, "shortcut": 0.2})
STABLE_ACCURACY = 0.7
_FRESH = 10_000  # seeds of the rows that the choice looks at
_KNOWS_SOMETHING = 60.0


@dataclass(frozen=True)
class ComparedSystem:
    """A trainer and an adapter under one title.

    Parameters
    ----------
    title : str
    trainer, adapter : str
        Names in the lists.
    options : mapping
        Hyper-parameters of the trainer on top of its preset.
    candidates : tuple of mappings
        Further ones to choose from on the training domains.

    Examples
    --------
    >>> ComparedSystem("IRM", "irm").adapter
    'none'
    """

    title: str
    trainer: str
    adapter: str = "none"
    options: Mapping[str, Any] = field(default_factory=dict)
    candidates: tuple[Mapping[str, Any], ...] = ({},)

    def trainers(self) -> list[Trainer]:
        """Return the trainer with each candidate's hyper-parameters."""
        make = TRAINERS[self.trainer].preset
        return [make("three_parts", **{**self.options, **candidate}) for candidate in self.candidates]


_WEIGHTS = (10.0, 100.0, 1000.0, 1e4)
_UNBALANCED = {"balance": False, "pretrain_steps": 100, "batch_size": None}
_OURS: tuple[Mapping[str, Any], ...] = (
    *({"stability": "irm", "stability_weight": w, "balance": True, "pretrain_steps": 0} for w in (10.0, 1e3)),
    *({"stability": s, "stability_weight": w, **_UNBALANCED} for s in ("irm", "vrex") for w in _WEIGHTS[1:]),
)
SYSTEMS = (
    ComparedSystem("ERM", "erm"),
    ComparedSystem("IRM", "irm", candidates=tuple({"weight": w} for w in _WEIGHTS)),
    ComparedSystem("QRM (EQRM)", "eqrm"),
    ComparedSystem("DARE, test whitening", "dare", "dare"),
    ComparedSystem("ACTIR, no labels", "actir"),
    ComparedSystem("ACTIR, fine-tuned", "actir", "fine-tune"),
    ComparedSystem(
        "SFB (paper)",
        "sfb-paper",
        "sfb-paper",
        candidates=tuple({"stability_weight": w} for w in _WEIGHTS),
    ),
    ComparedSystem("SFB (ours)", "sfb", "sfb", candidates=_OURS),
    ComparedSystem(
        "SFB (ours), columns known", "sfb-columns", "sfb", {"stable": (0, 3, 6), "unstable": (1, 4, 7)}
    ),
)
"""The rows of the paper's Table 1, and ours."""


@dataclass(frozen=True)
class Use:
    """What permuting one part costs, in points of accuracy."""

    cost: float
    error: float

    @property
    def used(self) -> bool:
        """Whether the cost is beyond chance."""
        return self.cost > USED_FROM * self.error and self.cost > 0.0


@dataclass(frozen=True)
class MeasuredSystem:
    """One row of the table, with its numbers (accuracies in percent, means over seeds).

    Attributes
    ----------
    title : str
    test_access : {"none", "unlabelled", "labelled"}
    parts : mapping of str to Use
        By part.
    familiar, reversed : float
        Accuracy in a domain like the training ones, and where the unstable columns are reversed.
    """

    title: str
    test_access: TestAccess
    parts: Mapping[str, Use]
    familiar: float
    reversed: float

    @property
    def drop(self) -> float:
        """Points lost in the reversed domain."""
        return self.familiar - self.reversed

    @property
    def robust(self) -> bool:
        """Whether that is little."""
        return self.drop < ROBUST_BELOW


def table_one(
    systems: Iterable[ComparedSystem] = SYSTEMS, *, seeds: Sequence[int] = (0,), n_rows: int = 4000
) -> Iterable[MeasuredSystem]:
    """Measure systems one after the other.

    Parameters
    ----------
    systems : iterable of ComparedSystem
    seeds : sequence of int
        Draws of the data and of the initial weights; figures are means over them.
    n_rows : int
        Rows of each domain.

    Yields
    ------
    MeasuredSystem

    Examples
    --------
    >>> row, = table_one([ComparedSystem("pooled", "pooled")], n_rows=2000)
    >>> [part for part, use in row.parts.items() if use.used], row.robust
    (['stable', 'complementary', 'non_complementary'], False)
    """
    datasets = [three_parts(n_rows, seed) for seed in seeds]
    for system in systems:
        yield _measure(system, datasets, seeds)


def three_parts(n_rows: int, seed: int) -> Dataset:
    """Return draws of the family with three columns of each part: three draws side by side, matched by label.

    Examples
    --------
    >>> data = three_parts(100, 0)
    >>> data.feature_groups["stable"], data.test
    ([0, 3, 6], ('test-0.8', 'test-0.2'))
    """
    parts = family("three_parts", train=TRAIN, validate=(), test=TEST, stable_accuracy=STABLE_ACCURACY)
    draws = [parts.sample(n_rows, N_COPIES * seed + copy) for copy in range(N_COPIES)]
    domains = []
    for name in draws[0].domain_names:
        same = [draw.domain(name) for draw in draws]
        counts = np.min([np.bincount(domain.y, minlength=2) for domain in same], axis=0)
        picked = [
            np.concatenate([np.flatnonzero(domain.y == k)[: counts[k]] for k in (0, 1)]) for domain in same
        ]
        X = np.hstack([domain.X[rows] for domain, rows in zip(same, picked, strict=True)])
        order = np.random.default_rng([seed, 2]).permutation(len(X))
        domains.append(Domain(name, X[order], same[0].y[picked[0]][order], same[0].facts))
    groups = {part: [k + 3 * copy for copy in range(N_COPIES)] for k, part in enumerate(PARTS)}
    return replace(
        draws[0], domains=tuple(domains), feature_groups=groups, stable_features=None, unstable_features=None
    )


def _measure(system: ComparedSystem, datasets: Sequence[Dataset], seeds: Sequence[int]) -> MeasuredSystem:
    candidates, adapter = system.trainers(), ADAPTERS[system.adapter]()
    accuracy = np.zeros((len(seeds), 2))
    costs = np.zeros((len(seeds), len(PARTS), 2))
    for i, (dataset, seed) in enumerate(zip(datasets, seeds, strict=True)):
        trained = _choose(candidates, dataset, seed)
        for j, name in enumerate(dataset.test):
            rows = domain_rows(dataset.domain(name), adapter.test_access, seed)
            predictor = adapt(trained, adapter, rows, seed=seed)
            accuracy[i, j] = 100 * _right(predictor, rows).mean()
            if j == 0:
                costs[i] = [_cost(predictor, rows, dataset.feature_groups[part], seed) for part in PARTS]
    means = costs.mean(axis=0)
    errors = np.sqrt((costs[:, :, 1] ** 2).sum(axis=0)) / len(seeds)
    return MeasuredSystem(
        title=system.title,
        test_access=adapter.test_access,
        parts={part: Use(float(means[k, 0]), float(errors[k])) for k, part in enumerate(PARTS)},
        familiar=float(accuracy[:, 0].mean()),
        reversed=float(accuracy[:, 1].mean()),
    )


def _choose(candidates: Sequence[Trainer], dataset: Dataset, seed: int) -> Predictor:
    """What the candidate learned that is most alike in the training domains; no test row is seen."""
    if len(candidates) == 1:
        return fit(candidates[0], dataset, seed=seed)
    fresh = three_parts(len(dataset.domain(dataset.train[0])), seed + _FRESH)
    best, least = None, np.inf
    for trainer in candidates:
        predictor = fit(trainer, dataset, seed=seed)
        accuracy = [100.0 * np.mean(predictor.predict(X) == y) for X, y in map(fresh.xy, fresh.train)]
        # One that has collapsed to chance is alike everywhere, too: it comes last.
        unlike = max(accuracy) - min(accuracy) + (100.0 if min(accuracy) < _KNOWS_SOMETHING else 0.0)
        if unlike < least:
            best, least = predictor, unlike
    assert best is not None
    return best


def _right(predictor: Predictor, rows: DomainRows, X: Any = None) -> Any:
    return predictor.predict(rows.scored.X if X is None else X) == rows.scored.y


def _cost(predictor: Predictor, rows: DomainRows, columns: Any, seed: int) -> tuple[float, float]:
    """Points lost when columns are permuted among the rows, and the standard error of that (paired)."""
    X = np.array(rows.scored.X)
    order = np.random.default_rng([seed, 1]).permutation(len(X))
    X[:, columns] = X[order][:, columns]
    lost = 100.0 * (_right(predictor, rows).astype(float) - _right(predictor, rows, X))
    return float(lost.mean()), float(lost.std(ddof=1) / np.sqrt(len(lost)))
