"""Views: what of a row the stable part is allowed to see, each a guess about what is unstable.

Which of them is right the search asks the data (`sfboost.torch.search`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from sfboost.registry import unknown


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
