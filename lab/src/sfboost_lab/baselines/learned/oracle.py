"""Oracles: what labels of the test domain, or knowledge of what is stable, would give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from sfboost.torch.split_network import seed_of
from sfboost_lab.baselines.contract import LabelledRows, TestAccess
from sfboost_lab.baselines.learned.generalisation import ERMTrainer, published
from sfboost_lab.baselines.learned.network import NetworkPredictor

_FIRST = {"columns": (0,)}


@dataclass(frozen=True)
class Oracle(ERMTrainer):
    """ERM on labelled rows of the test domain itself (ORACLE). The training domains are not looked at.

    Examples
    --------
    >>> import numpy as np
    >>> rows = LabelledRows(np.array([[-1.0], [1.0]] * 4), np.array([1, 0] * 4), np.repeat("test", 8))
    >>> Oracle(network="small", steps=100, learning_rate=0.1).fit(rows, test=rows).predict(np.array([[1.0]]))
    array([0])
    """

    name: ClassVar[str] = "oracle"
    title: ClassVar[str] = "Oracle"
    test_access: ClassVar[TestAccess] = "labelled"
    oracle: ClassVar[bool] = True

    def rows_to_learn(self, train: LabelledRows, test: Any, seed: int) -> LabelledRows:
        """Return the labelled rows of the test domain."""
        if not isinstance(test, LabelledRows):
            raise ValueError("Oracle needs labelled rows of the test domain: pass test=LabelledRows(...).")
        return test


@dataclass(frozen=True)
class OracleStable(ERMTrainer):
    """ERM that is told what is stable (ORACLE): it cannot use anything else.

    Parameters
    ----------
    columns : tuple of int, optional
        The stable columns of a table.
    random_colour : bool
        For coloured images (n, 2, height, width): swap the two channels of each training row with probability
        one half, which makes the colour independent of the label (agreement 0.5).

    Examples
    --------
    >>> OracleStable.preset("ac").columns, OracleStable.preset("colored_mnist").random_colour
    ((0,), True)
    """

    name: ClassVar[str] = "oracle-stable"
    title: ClassVar[str] = "Oracle, no adaptation"
    oracle: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published(
        {"random_colour": True, "cosine": False}, _FIRST, multiclass_ac={"columns": (0, 1, 2, 3)}
    )

    columns: tuple[int, ...] | None = None
    random_colour: bool = False

    def rows_to_learn(self, train: LabelledRows, test: Any, seed: int) -> LabelledRows:
        """Return the stable part of the rows alone."""
        if (self.columns is None) != self.random_colour:
            raise ValueError(
                f"{self.title} needs to know what is stable: give `columns`, or random_colour=True for "
                "coloured images, and not both."
            )
        if self.columns is None:
            return replace(train, X=_recoloured(train.X, seed))
        return replace(train, X=np.asarray(train.X)[:, list(self.columns)])

    def finish(self, trained: NetworkPredictor, train: LabelledRows) -> NetworkPredictor:
        """Return a predictor that takes whole rows."""
        if self.columns is None:
            return trained
        return replace(trained, body=nn.Sequential(_TakeColumns(list(self.columns)), trained.body))


class _TakeColumns(nn.Module):
    """Some columns of the rows."""

    def __init__(self, columns: list[int]) -> None:
        super().__init__()
        self.columns = columns

    def forward(self, x: Tensor) -> Tensor:
        return x[:, self.columns]


def _recoloured(X: Any, seed: int) -> Any:
    """The images with their two channels swapped at random."""
    X = np.asarray(X)
    if X.ndim != 4 or X.shape[1] != 2:
        raise ValueError(f"random_colour needs images of shape (n, 2, height, width), got {X.shape}.")
    swap = np.random.default_rng(seed_of(seed, 5)).random(len(X)) < 0.5
    return np.where(swap[:, None, None, None], X[:, ::-1], X)
