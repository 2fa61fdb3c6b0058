"""What the search tries: ways to a stable part, as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import nn

from sfboost.torch.building import trunk_width
from sfboost.torch.networks import GivenTrunk, make_network
from sfboost.torch.plan import Goal
from sfboost.torch.views import VIEWS, Part, views_of


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One way to a stable part.

    Attributes
    ----------
    view : str
        What of a row f_S sees, see `sfboost.torch.views`.
    network : str
        The trunk; "own" is the module that was passed.
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
    balance: bool = False
    penalty: str = "none"
    penalty_weight: float = 0.0
    dropout: float = 0.0
    weight_decay: float = 0.0
    frozen: bool = False
    steady: bool = False

    def __str__(self) -> str:
        parts = [self.network, self.view if self.view != "whole" else ""]
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
    narrow, vrex 10
    narrow, steady features
    linear
    """
    own = network == "own"
    changed = [replace(best, frozen=True) if own else replace(best, dropout=0.5)]
    changed.append(replace(best, weight_decay=0.01))
    name = goal.penalty if isinstance(goal.penalty, str) else "own"
    # Beside IRM the penalty that asks for the same of the risks themselves.
    names = {"none": [], "irm": ["irm", "vrex"]}.get(name, [name])
    changed += [replace(best, penalty=each, penalty_weight=goal.penalty_weight) for each in names]
    changed.append(replace(best, steady=True))
    if network == "auto" and len(shape) == 1:
        changed.append(replace(best, network="linear"))
    if network == "auto" and len(shape) == 3 and min(shape[1:]) >= 14:
        changed.append(replace(best, network="cnn"))
    return changed


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
        if candidate.steady:
            seen.append(Part([trunk_width(seen, torch.zeros(2, *shape))]))
        return seen

    return make
