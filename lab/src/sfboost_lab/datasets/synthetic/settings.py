"""The settings of synthetic domains: one number (the agreement) or several named dials for each."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfboost.datasets.colored_digits import check_probability
from sfboost.datasets.contract import check_seed, unique_names

Dials = float | Mapping[str, float]

_PROBABILITIES = ("agreement", "prior", "stable_rate", "shortcut")


@dataclass(frozen=True)
class Setting:
    """One domain to be drawn: its name, its role and its dials.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic.settings import Setting
    >>> Setting("test-0.1", "test", {"agreement": 0.1}).dials["agreement"]
    0.1
    """

    name: str
    role: str
    dials: Mapping[str, float]


def settings(
    train: Sequence[Dials],
    validate: Sequence[Dials],
    test: Sequence[Dials],
    defaults: Mapping[str, float],
    main: str = "agreement",
) -> tuple[Setting, ...]:
    """Return the settings of all domains; a bare number is the main dial, which also names the domain.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic.settings import settings
    >>> made = settings([0.9], [], [{"agreement": 0.1, "prior": 0.3}], {"agreement": 0.5, "prior": 0.5})
    >>> [(s.name, s.dials["prior"]) for s in made]
    [('train-0.9', 0.5), ('test-0.1', 0.3)]
    """
    made: list[tuple[str, str, dict[str, float]]] = []
    for role, group in (("train", train), ("validate", validate), ("test", test)):
        for given in group:
            dials = dict(given) if isinstance(given, Mapping) else {main: given}
            unknown = sorted(set(dials) - set(defaults))
            if unknown:
                raise ValueError(f"Got dials {unknown} for a {role} domain; the dials are {list(defaults)}.")
            merged = {**defaults, **dials}
            for name in set(merged) & set(_PROBABILITIES):
                check_probability(name, merged[name])
            made.append((f"{role}-{merged[main]}", role, merged))
    names = unique_names(name for name, _, _ in made)
    return tuple(Setting(name, role, dials) for name, (_, role, dials) in zip(names, made, strict=True))


def domain_rng(random_state: int, name: str, purpose: int = 0) -> np.random.Generator:
    """Return the generator of one domain; no domain's rows depend on which others are drawn.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic.settings import domain_rng
    >>> bool(domain_rng(0, "a").random() == domain_rng(0, "a").random())
    True
    """
    return np.random.default_rng([check_seed(random_state), zlib.crc32(name.encode()), purpose])
