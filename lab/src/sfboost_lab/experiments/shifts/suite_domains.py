"""The rows of the suite: own domains, and a new one as numbers, from tables or colourings.

A domain has at most `most` rows, drawn by the seed; own domains are all others, or `own` of them, also drawn.
With `split` stable and unstable columns are drawn too, in place of those that the loader names.
Categories become numbers by recipes of the own domains alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.datasets import Dataset
from sfboost.frames import Encoder
from sfboost_lab.datasets import load
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.shifts.kinds import Floats, SplitRows
from sfboost_lab.experiments.shifts.unseen import UNSEEN, load_unseen

#: Table → its number of domains.
TABLES = {
    "heart_disease": 4,
    "wine_quality": 2,
    "eicu": 4,
    "impact": 15,
    "tv16": 12,
    "gusto": 16,
    "amazon_reviews": 4,
}
#: Coloured digits → the most rows of a domain.
COLOURED = {"colored_digits": 2000, "colored_mnist": 5000}


@dataclass(frozen=True, eq=False)
class SuiteDomains:
    """What a group of runs learns from and is measured on.

    Attributes
    ----------
    own : SplitRows
    domain : array
        The own domain of each row.
    new : dict of str to SplitRows
        The new domain; of coloured digits every agreement.
    groups : integer array
        Feature of each unstable column.
    names : tuple of str
        Of the features.
    """

    own: SplitRows
    domain: npt.NDArray[Any]
    new: dict[str, SplitRows]
    groups: npt.NDArray[np.intp]
    names: tuple[str, ...]


def suite_domains(run: Run) -> SuiteDomains:
    """Return the rows of a run; `new` (a position) names the domain that is left out.

    Examples
    --------
    >>> made = suite_domains(Run("colored_digits", "logistic", seed=0, protocol="doc", data={"most": 100}))
    >>> made.own.matrix().shape, len(made.new), made.names
    ((200, 66), 11, ('x64', 'x65'))
    """
    dataset = _load(run)
    rng = np.random.default_rng([run.data_seed, int(run.data.get("new", 0))])
    own, new = _roles(dataset, run, rng)
    most = int(run.data["most"])
    drawn = {name: _at_most(len(dataset.domain(name)), most, rng) for name in [*own, *new]}
    to_numbers, groups, names = _numbers(dataset, own)

    def rows(name: str) -> SplitRows:
        domain = dataset.domain(name)
        return SplitRows(*to_numbers(domain.X), domain.y.astype(np.intp)).take(drawn[name])

    parts = [rows(name) for name in own]
    together = SplitRows(
        np.concatenate([part.stable for part in parts]),
        np.concatenate([part.unstable for part in parts]),
        np.concatenate([part.y for part in parts]),
    )
    domain = np.repeat(own, [len(part) for part in parts])
    return SuiteDomains(together, domain, {name: rows(name) for name in new}, groups, names)


def _load(run: Run) -> Dataset:
    if run.dataset in ("colored_digits", "colored_mnist"):
        return load(run.dataset, view="table", random_state=run.data_seed)
    written = load_unseen(run.dataset) if run.dataset in UNSEEN else load(run.dataset)
    return _split_at_random(written, run.data["split"]) if "split" in run.data else written


def _split_at_random(dataset: Dataset, seed: int) -> Dataset:
    """Half of the columns are called stable, whichever they are: a split that nobody has thought about."""
    names = [*(dataset.stable_features or ()), *(dataset.unstable_features or ())]
    order = np.random.default_rng(seed).permutation(len(names))
    half = len(names) // 2
    stable, unstable = ([names[k] for k in np.sort(part)] for part in (order[:half], order[half:]))
    return replace(dataset, stable_features=stable, unstable_features=unstable)


def _roles(dataset: Dataset, run: Run, rng: np.random.Generator) -> tuple[list[str], list[str]]:
    if "new" not in run.data:
        return list(dataset.train), list(dataset.test)
    new = dataset.domain_names[run.data["new"]]
    others = [name for name in dataset.domain_names if name != new]
    wanted = run.data.get("own")
    if wanted is not None:
        others = [others[i] for i in sorted(rng.permutation(len(others))[:wanted])]
    return others, [new]


def _at_most(n: int, most: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    return np.arange(n) if n <= most else np.sort(rng.permutation(n)[:most])


ToNumbers = Callable[[Any], tuple[Floats, Floats]]


def _numbers(dataset: Dataset, own: Sequence[str]) -> tuple[ToNumbers, npt.NDArray[np.intp], tuple[str, ...]]:
    """How X becomes stable and unstable numbers, the feature of each unstable column, and their names."""
    stable: Any = dataset.stable_features
    unstable: Any = dataset.unstable_features
    X = dataset.pooled(own)[0]
    if not hasattr(X, "columns"):
        names = dataset.feature_names or [f"x{k}" for k in range(X.shape[1])]

        def taken(X: Any) -> tuple[Floats, Floats]:
            numbers = np.asarray(X, dtype=np.float64)
            return numbers[:, stable], numbers[:, unstable]

        return taken, np.arange(len(unstable)), tuple(str(names[int(k)]) for k in unstable)
    encoders = [Encoder.fit(X, [str(name) for name in part]) for part in (stable, unstable)]
    kept = [column for column in encoders[1].columns if column.outputs]
    groups = np.repeat(np.arange(len(kept)), [len(column.outputs) for column in kept])

    def encoded(X: Any) -> tuple[Floats, Floats]:
        return encoders[0].encode(X), encoders[1].encode(X)

    return encoded, groups, tuple(column.name for column in kept)
