"""What a run is: the identity that names its record, and the seeds that follow from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np


def canonical(value: Any) -> Any:
    """Return plain JSON values that are equal where the values are: 10.0 is 10, a tuple is a list.

    Examples
    --------
    >>> canonical({"weights": (10.0, 0.5)})
    {'weights': [10, 0.5]}
    """
    if isinstance(value, Mapping):
        return {str(name): canonical(value[name]) for name in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and value == value):
        return value
    raise TypeError(
        f"Got {value!r} of type {type(value).__name__} in a run's identity; use numbers, text, None, lists "
        "and mappings, so that the identity can be written down."
    )


def digest(value: Any) -> str:
    """Return 32 hexadecimal digits that stand for a value.

    Examples
    --------
    >>> digest({"a": 1, "b": 2.0}) == digest({"b": 2, "a": 1.0})
    True
    """
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def seed_from(*parts: Any) -> int:
    """Return a seed of 31 bits for what the parts name.

    Examples
    --------
    >>> seed_from("data", "ac", 0) == seed_from("data", "ac", 1)
    False
    """
    return int(digest(list(parts))[:8], 16) >> 1


@dataclass(frozen=True)
class Run:
    """One thing to measure. Two runs are the same if and only if every field is.

    Parameters
    ----------
    dataset : str
        Name of a data set.
    trainer : str
        Name of what learns from the labelled domains.
    seed : int
        Number of the repetition.
    protocol : str
        Name of the rules around it: how rows are split, what is measured where.
    adapter : str
        Name of what adapts to the new domain; "none" for nothing.
    data, hyper, adapter_hyper : mapping
        Options of the data set, hyper-parameters of trainer and adapter: plain JSON values.
    left_out : str, optional
        Training domain that was kept from the trainer, to be the new one.

    Examples
    --------
    >>> run = Run("ac", "irm", seed=0, protocol="synthetic", hyper={"weight": 10})
    >>> run.id == Run("ac", "irm", seed=0, protocol="synthetic", hyper={"weight": 10.0}).id
    True
    >>> len(run.id)
    32
    """

    dataset: str
    trainer: str
    seed: int
    protocol: str
    adapter: str = "none"
    data: Mapping[str, Any] = field(default_factory=dict)
    hyper: Mapping[str, Any] = field(default_factory=dict)
    adapter_hyper: Mapping[str, Any] = field(default_factory=dict)
    left_out: str | None = None

    @cached_property
    def id(self) -> str:
        """The name of its record."""
        return digest(self.identity())

    def identity(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return dict(canonical(asdict(self)))

    @classmethod
    def from_identity(cls, identity: Mapping[str, Any]) -> Self:
        """The run of `identity()`."""
        return cls(**identity)

    def __hash__(self) -> int:
        return hash(self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.id == other.id

    def unadapted(self) -> Run:
        """The same training without adaptation."""
        return replace(self, adapter="none", adapter_hyper={})

    def training(self) -> dict[str, Any]:
        """What decides the trained model; runs that agree here share it."""
        return self.unadapted().identity()

    def candidate(self) -> dict[str, Any]:
        """What is chosen among: everything but the repetition and the domain left out."""
        return {k: v for k, v in self.identity().items() if k not in ("seed", "left_out")}

    @property
    def data_seed(self) -> int:
        """Of the rows. The same for every method and every option of the data set."""
        return seed_from("data", self.dataset, self.seed)

    def pretraining_seed(self, network: Any, schedule: Any) -> int:
        """Of training that many runs share: it knows nothing of what comes after."""
        return seed_from("pretraining", self.dataset, network, schedule, self.seed)

    @property
    def training_seed(self) -> int:
        """Of the trainer. Adapters of one model share it."""
        return seed_from("training", self.training())

    @property
    def own_seed(self) -> int:
        """Of whatever is this run's alone."""
        return seed_from("run", self.id)
