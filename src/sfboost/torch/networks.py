"""Trunks: networks that turn inputs into hidden features; views: what of a row they are shown.

A trunk is any ``nn.Module`` that maps a batch to a matrix of shape (n, width); `SFBClassifier` adds the
split into Φ_S and Φ_U and the heads. The named ones here are those of the paper's tables (App. F):

==================== ==================================================================
``"linear"``         no hidden layer: rows that are features already
``"small"``          two hidden layers of 8 units (the synthetic data)
``"narrow"``         two hidden layers of 100 units (where rows are few)
``"mlp"``            two hidden layers of 390 units (ColoredMNIST as the paper says)
``"mlp3"``           three hidden layers of 390 units (ColoredMNIST as the code did)
``"efficientnet-lite0"`` EfficientNet-Lite0 with ImageNet weights, from the ``vision`` extra
==================== ==================================================================
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sfboost.registry import unknown

_BYTE = 256


class ByteDropout(nn.Module):
    """Dropout whose mask comes from random bytes: `nn.Dropout` at a fraction of the cost on a CPU.

    Parameters
    ----------
    p : float
        Share of units dropped, in steps of 1/256.

    Examples
    --------
    >>> import torch
    >>> ByteDropout(0.5).eval()(torch.ones(2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"Dropout must be at least 0 and below 1, got {p}.")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Drop in training, pass through in evaluation."""
        threshold = min(round(self.p * _BYTE), _BYTE - 1)  # never rounded up to everything
        if not self.training or not threshold:
            return x
        words = torch.empty(x.numel() // 8 + 1, dtype=torch.int64)
        # The default range of random_ leaves the sign bit at zero: one byte in eight would be biased.
        words.random_(torch.iinfo(torch.int64).min, None)
        drop = (words.view(torch.uint8)[: x.numel()] < threshold).view(x.shape).to(x.device)
        return x.masked_fill(drop, 0.0) * (_BYTE / (_BYTE - threshold))


class GivenTrunk(nn.Module):
    """A copy of a user's network, which is trained from the weights that it came with.

    Where training starts again it starts from these: they may be worth more than new ones.

    Parameters
    ----------
    module : nn.Module
        Maps a batch to (n, width). It is left as it is.

    Examples
    --------
    >>> trunk = GivenTrunk(nn.Linear(1, 1))
    >>> before = trunk.module.weight.item()
    >>> trunk.module.reset_parameters()
    >>> trunk.reset_parameters()
    >>> trunk.module.weight.item() == before
    True
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = copy.deepcopy(module)
        self._given = {name: value.detach().clone() for name, value in module.state_dict().items()}

    def reset_parameters(self) -> None:
        """Go back to the weights that it came with."""
        self.module.load_state_dict(self._given)

    def forward(self, x: Tensor) -> Tensor:
        """Return what the network makes of a batch."""
        made: Tensor = self.module(x)
        return made


class MLP(nn.Module):
    """Linear layers, each followed by ReLU and dropout.

    Parameters
    ----------
    n_inputs : int
        Numbers per row; rows of any shape are flattened.
    hidden : sequence of int
        Units per hidden layer; the last one is the width of the features. Without any the rows themselves,
        flattened, are the features.
    dropout : float
        Share of units dropped after each layer.

    Examples
    --------
    >>> import torch
    >>> MLP(4, (8, 8))(torch.zeros(3, 2, 2)).shape
    torch.Size([3, 8])
    """

    def __init__(self, n_inputs: int, hidden: Sequence[int] = (390, 390), *, dropout: float = 0.0) -> None:
        super().__init__()
        widths = [n_inputs, *hidden]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.dropout = ByteDropout(dropout)
        self.n_features = widths[-1]
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw Xavier weights and zero biases, as in the ColoredMNIST networks of IRM and QRM."""
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the last hidden layer."""
        x = x.flatten(1)
        for layer in self.layers:
            x = self.dropout(layer(x).relu())
        return x


def _efficientnet(shape: Sequence[int], dropout: float) -> nn.Module:
    from sfboost.torch.efficientnet import EfficientNetLite0

    if len(shape) != 3:
        raise ValueError(
            "The network 'efficientnet-lite0' needs images of shape (channels, height, width), got rows of "
            f"shape {tuple(shape)}. Reshape X, or use network='mlp'."
        )
    return EfficientNetLite0(dropout=dropout)


#: Every network that can be asked for by name, with the units of its hidden layers if these are all it is.
NETWORKS: dict[str, tuple[int, ...] | None] = {
    "linear": (),
    "small": (8, 8),
    "narrow": (100, 100),
    "mlp": (390, 390),
    "mlp3": (390, 390, 390),
    "efficientnet-lite0": None,
}


def make_network(network: str | nn.Module, shape: Sequence[int], *, dropout: float = 0.0) -> nn.Module:
    """Build a trunk by name for rows of the given shape, or around a module of the user's.

    Parameters
    ----------
    network : str or nn.Module
        A key of `NETWORKS`, or a module, which is copied with its weights.
    shape : sequence of int
        The shape of one row of X.
    dropout : float
        Share of hidden units dropped in training.

    Returns
    -------
    nn.Module
        The initial weights of a named one come from torch's current random state.

    Examples
    --------
    >>> make_network("small", (2,)).n_features
    8
    """
    if isinstance(network, nn.Module):
        return GivenTrunk(network)
    if network not in NETWORKS:
        raise ValueError(f"{unknown('network', network, NETWORKS)} Or pass an nn.Module.")
    hidden = NETWORKS[network]
    if hidden is None:
        return _efficientnet(shape, dropout)
    return MLP(torch.Size(shape).numel(), hidden, dropout=dropout)


# -- views: what of a row the stable part is allowed to see, each a guess about what is unstable -------------


class Grey(nn.Module):
    """The mean of the channels, in every channel: a picture without colour.

    Examples
    --------
    >>> import torch
    >>> Grey()(torch.tensor([[[[2.0]], [[0.0]]]])).flatten().tolist()
    [1.0, 1.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return a batch of the same shape."""
        return x.mean(1, keepdim=True).expand_as(x)


class OwnView(nn.Module):
    """What a user's function or module makes of a batch; nothing of it is trained.

    Parameters
    ----------
    view : callable
        Maps a batch to a batch. A module is copied.

    Examples
    --------
    >>> import torch
    >>> OwnView(torch.sign)(torch.tensor([[3.0, -2.0]])).tolist()
    [[1.0, -1.0]]
    """

    def __init__(self, view: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.view = copy.deepcopy(view).requires_grad_(False) if isinstance(view, nn.Module) else view

    def forward(self, x: Tensor) -> Tensor:
        """Return what the view shows of a batch."""
        return self.view(x)


#: Views by name.
VIEWS: dict[str, Callable[[], nn.Module]] = {"whole": nn.Identity, "grey": Grey}


def name_of(view: Any) -> str:
    """Return the name of a view: that of the function or of the module's class.

    Examples
    --------
    >>> name_of("grey"), name_of(nn.Flatten())
    ('grey', 'Flatten')
    """
    if isinstance(view, str):
        return view
    return str(getattr(view, "__name__", type(view).__name__))


def views_by_name(views: Sequence[Any] | None, shape: Sequence[int]) -> dict[str, Callable[[], nn.Module]]:
    """Return what makes each view, the whole row first; None asks for grey where pictures have colour.

    Examples
    --------
    >>> list(views_by_name(None, (3, 8, 8))), list(views_by_name(None, (5,)))
    (['whole', 'grey'], ['whole'])
    """
    if isinstance(views, str):
        raise TypeError(f"views must be a list, got {views!r}: pass [{views!r}].")
    if views is None:
        views = ["grey"] if len(shape) == 3 and shape[0] > 1 else []
    made = {"whole": VIEWS["whole"]}
    for view in views:
        if isinstance(view, str) and view not in VIEWS:
            raise ValueError(f"{unknown('view', view, VIEWS)} Or pass a function or an nn.Module.")
        if not isinstance(view, str) and not callable(view):
            raise TypeError(f"A view is a name, a function or an nn.Module, got {type(view).__name__}.")
        if view == "grey" and len(shape) < 2:
            raise ValueError(f"The view 'grey' needs pictures, got rows of shape {tuple(shape)}.")
        made[name_of(view)] = VIEWS[view] if isinstance(view, str) else _maker(view)
    return made


def _maker(view: Callable[[Tensor], Tensor]) -> Callable[[], nn.Module]:
    return lambda: OwnView(view)
