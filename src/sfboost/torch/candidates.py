"""What the search tries: ways to a stable part, as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import nn

from sfboost.torch.networks import FirstHalf, GivenTrunk, make_network
from sfboost.torch.plan import Goal
from sfboost.torch.split_network import trunk_width
from sfboost.torch.views import VIEWS, Part, views_of

# Weights of a penalty over the default one: V-REx wants large ones, IRM dies of them.
_LARGER = (1.0, 10.0, 100.0)
# Pixels of a side: smaller pictures have little to convolve.
_CONVOLVED_FROM = 14


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One way to a stable part.

    Attributes
    ----------
    view : str
        What of a row f_S sees, see `sfboost.torch.views`.
    network : str
        The trunk; "own" is the module that was passed.
    split : {"separate", "alternating", "shared"}
        Where a Φ_U is while f_S learns: nowhere; beside it, for f_S to become independent of it; in the other
        half of its trunk's features, on the joint risk. The Φ_U that is kept is always another one, learned
        afterwards.
    balance : bool
        Whether rows are drawn so that the label is independent of the first guess: rows that it gets wrong
        count more.
    penalty : str
        The stability penalty; "own" is the module that was passed.
    penalty_weight, dropout, weight_decay : float
    frozen : bool
        Whether the trunk keeps the weights that it has: f_S is linear in what it makes of a row.
    steady : bool
        Whether f_S reads only those learned features that say the same of the class in every domain.

    Examples
    --------
    >>> print(Candidate(view="grey", dropout=0.5))
    narrow, grey, dropout 0.5
    """

    view: str = "whole"
    network: str = "narrow"
    split: str = "separate"
    balance: bool = False
    penalty: str = "none"
    penalty_weight: float = 0.0
    dropout: float = 0.0
    weight_decay: float = 0.0
    frozen: bool = False
    steady: bool = False

    def __str__(self) -> str:
        parts = [self.network, self.view if self.view != "whole" else ""]
        parts.append(self.split if self.split != "separate" else "")
        parts.append("balanced" if self.balance else "")
        parts.append(f"{self.penalty} {self.penalty_weight:g}" if self.penalty != "none" else "")
        parts.append(f"dropout {self.dropout:g}" if self.dropout else "")
        parts.append(f"decay {self.weight_decay:g}" if self.weight_decay else "")
        parts.append("frozen" if self.frozen else "")
        parts.append("steady features" if self.steady else "")
        return ", ".join(part for part in parts if part)

    def settings(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


def first_candidates(network: str, shape: Sequence[int]) -> list[Candidate]:
    """Return the candidates of the first round: every view, with all rows as they are and balanced.

    The whole row without balancing is not among them: that is the guess itself.

    Examples
    --------
    >>> [str(c) for c in first_candidates("auto", (3,))][:3]
    ['narrow, balanced', 'narrow, columns', 'narrow, columns, balanced']
    """
    start = Candidate(network="narrow" if network == "auto" else network)
    pairs = [(view, balance) for view in views_of(shape) for balance in (False, True)]
    return [replace(start, view=view, balance=balance) for view, balance in pairs[1:]]


def variants(best: Candidate, network: str, shape: Sequence[int], goal: Goal) -> list[Candidate]:
    """Return the candidates of the second round: the best of the first with one thing changed.

    Examples
    --------
    >>> for candidate in variants(Candidate(), "auto", (3,), Goal()):
    ...     print(candidate)
    narrow, dropout 0.5
    narrow, decay 0.01
    narrow, irm 10
    narrow, irm 100
    narrow, irm 1000
    narrow, vrex 10
    narrow, vrex 100
    narrow, vrex 1000
    narrow, steady features
    narrow, alternating
    narrow, shared
    small
    mlp
    linear
    """
    own = network == "own"
    changed = [replace(best, frozen=True) if own else replace(best, dropout=0.5)]
    changed.append(replace(best, weight_decay=0.01))
    changed += [
        replace(best, penalty=name, penalty_weight=weight)
        for name in _penalties(goal)
        for weight in _penalty_weights(goal)
    ]
    changed.append(replace(best, steady=True))
    if goal.independence_weight:
        changed.append(replace(best, split="alternating"))
    if network not in ("own", "linear"):  # what is in which half of given features says nothing
        changed.append(replace(best, split="shared"))
    if network == "auto":
        changed += [replace(best, network=name) for name in _networks(shape)]
    return changed


def _penalties(goal: Goal) -> list[str]:
    """The penalty that is asked for; beside IRM the one that asks for the same of the risks themselves."""
    name = goal.penalty if isinstance(goal.penalty, str) else "own"
    return {"none": [], "irm": ["irm", "vrex"]}.get(name, [name])


def _penalty_weights(goal: Goal) -> tuple[float, ...]:
    """The weight that is asked for; beside the default one larger ones, of a penalty by name."""
    searched = goal.penalty_weight == Goal.penalty_weight and isinstance(goal.penalty, str)
    return tuple(factor * goal.penalty_weight for factor in (_LARGER if searched else (1.0,)))


def _networks(shape: Sequence[int]) -> list[str]:
    """Other widths than "narrow"; of columns none at all, of pictures that are large enough convolutions."""
    names = ["small", "mlp"]
    if len(shape) == 1:
        names.append("linear")
    if len(shape) == 3 and min(shape[1:]) >= _CONVOLVED_FROM:
        names.append("cnn")
    return names


def trunk_maker(
    candidate: Candidate, own: nn.Module | None, shape: Sequence[int], n_classes: int
) -> Callable[[], nn.Module]:
    """Return what makes the trunk of a candidate for rows of a shape: a view, a network, which features.

    Examples
    --------
    >>> import torch
    >>> trunk_maker(Candidate(view="columns"), None, (3,), 2)()(torch.zeros(2, 3)).shape
    torch.Size([2, 100])
    """

    def make() -> nn.Module:
        if candidate.network == "own" and own is not None:
            trunk: nn.Module = GivenTrunk(own)
        else:
            trunk = make_network(candidate.network, shape, dropout=candidate.dropout)
        if candidate.frozen:
            trunk.requires_grad_(False)
        seen = nn.Sequential(VIEWS[candidate.view](shape, n_classes), trunk)
        if candidate.split == "shared":
            seen.append(FirstHalf())
        if candidate.steady:
            seen.append(Part([trunk_width(seen, torch.zeros(2, *shape))]))
        return seen

    return make
