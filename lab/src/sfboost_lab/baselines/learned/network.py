"""Predictors that are networks, and the training of one network with one head (needs the torch extra).

Training is that of `sfboost.torch`: a domain-generalisation trainer is its stable stage alone.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sfboost.torch.networks import MLP, make_network
from sfboost.torch.rows import ArraySource, Rows, check_training, make_source, number_type, read_rows, read_x
from sfboost_lab.baselines.contract import Floats, LabelledRows, LinearHead, MostProbable

_CHUNK = 4096
# Hidden layers of the networks of ColoredMNIST.
_WIDE = {"mlp": (390,) * 2, "mlp3": (390,) * 3}
# Numbers in a layer of a step from which masks are padded, and to what.
_PADDED_FROM, _LANE = 2**20, 16


@dataclass(frozen=True, eq=False)
class NetworkPredictor(MostProbable):
    """A network and its last linear layer.

    Parameters
    ----------
    classes_ : ndarray of shape (K,)
    body : nn.Module
        Maps rows to features; in evaluation mode.
    head : LinearHead

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> head = LinearHead.of([[1.0, 0.0]], [0.0])
    >>> NetworkPredictor(np.array([0, 1]), nn.Identity(), head).predict(np.array([[2.0, 0.0]]))
    array([1])
    """

    classes_: npt.NDArray[Any]
    body: nn.Module
    head: LinearHead

    def features(self, X: Any) -> Floats:
        """Return what the last layer reads, as float64."""
        return run_body(self.body, X)

    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities."""
        return self.head.proba(self.features(X))


def run_body(body: nn.Module, X: Any) -> Floats:
    """Run rows through a network in pieces.

    Examples
    --------
    >>> from torch import nn
    >>> run_body(nn.Identity(), [[1.0, 2.0]])
    array([[1., 2.]])
    """
    parameter = next(body.parameters(), torch.zeros(()))
    with torch.no_grad():
        parts = [body(part.to(parameter.device)) for part in read_x(X, parameter.dtype).split(_CHUNK)]
    return torch.cat(parts).double().cpu().numpy()


@dataclass(frozen=True, eq=False)
class NetworkProblem:
    """Labelled rows made ready for training: the source of batches and an untrained network."""

    classes: npt.NDArray[Any]
    source: ArraySource
    network: Any


def read_training(
    train: LabelledRows, *, precision: str, batch_size: int | None, penalised: bool
) -> tuple[Rows, npt.NDArray[Any], ArraySource]:
    """Check labelled rows; return them as tensors, their classes, and the source of batches."""
    dtype = number_type(precision)
    rows = read_rows(train.X, train.y, train.domain, dtype)
    check_training(rows, penalised=penalised, batch_size=batch_size)
    classes = np.unique(rows.y)
    return rows, classes, make_source(rows, classes, np.unique(rows.domain), torch.device("cpu"), dtype)


class PaddedMLP(MLP):
    """An `MLP` that may draw dropout for whole cache lines of units: the masks of the records.

    Examples
    --------
    >>> PaddedMLP(4, (8, 8)).padded
    False
    """

    padded = False

    def forward(self, x: Tensor) -> Tensor:
        """Return the last hidden layer."""
        if not (self.padded and self.training and torch.is_grad_enabled()):
            return super().forward(x)
        x = x.flatten(1)
        for layer in self.layers:
            hidden = layer(x).relu()
            width = hidden.shape[1]
            x = self.dropout(nn.functional.pad(hidden, (0, -width % _LANE)))[:, :width]
        return x


def make_trunk(network: str | nn.Module, shape: tuple[int, ...], dropout: float) -> nn.Module:
    """Return a named network, or a copy of a given one.

    Examples
    --------
    >>> make_trunk("small", (2,), 0.0).n_features
    8
    """
    if isinstance(network, nn.Module):
        return copy.deepcopy(network)
    if network in _WIDE:
        return PaddedMLP(math.prod(shape), _WIDE[network], dropout=dropout)
    return make_network(network, shape, dropout=dropout)


def pad_dropout(network: nn.Module, rows: int, *, second_order: bool) -> None:
    """Let the layers of a network draw padded masks where a step of so many rows is a large one."""
    for module in network.modules():
        if isinstance(module, PaddedMLP):
            module.padded = rows * module.n_features >= _PADDED_FROM and not second_order


def head_of_layer(layer: nn.Linear) -> LinearHead:
    """Return a torch layer as a head of K rows.

    Examples
    --------
    >>> import torch
    >>> head_of_layer(torch.nn.Linear(3, 1)).coef.shape
    (2, 3)
    """
    return LinearHead.of(layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy())
