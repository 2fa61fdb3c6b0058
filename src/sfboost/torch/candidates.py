"""What a search tries: views of the rows, balanced or not, with a penalty or with dropout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch import Tensor, nn

from sfboost.torch.networks import make_network
from sfboost.torch.plan import Goal
from sfboost.torch.split_network import SplitNetwork, build_network


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One way to a stable part.

    Attributes
    ----------
    view : str
        What of a row f_S sees, see `sfboost.torch.networks.VIEWS`.
    balance : bool
        Whether rows are drawn so that the label is independent of the guess: rows that it gets wrong count
        more.
    penalty : str
        The stability penalty; "own" is the module that was passed.
    penalty_weight, dropout : float

    Examples
    --------
    >>> print(Candidate(view="grey", penalty="irm", penalty_weight=10.0))
    grey, irm 10
    """

    view: str = "whole"
    balance: bool = False
    penalty: str = "none"
    penalty_weight: float = 0.0
    dropout: float = 0.0

    def __str__(self) -> str:
        parts = [self.view, "balanced" if self.balance else ""]
        parts.append(f"{self.penalty} {self.penalty_weight:g}" if self.penalty != "none" else "")
        parts.append(f"dropout {self.dropout:g}" if self.dropout else "")
        return ", ".join(part for part in parts if part)


def first_candidates(views: Sequence[str]) -> list[Candidate]:
    """Return every view with rows as they are and balanced; without the whole row as it is, the guess itself.

    Examples
    --------
    >>> [str(candidate) for candidate in first_candidates(["whole", "grey"])]
    ['whole, balanced', 'grey', 'grey, balanced']
    """
    return [Candidate(view=view, balance=balance) for view in views for balance in (False, True)][1:]


def variants(best: Candidate, goal: Goal, *, dropout: bool = True) -> list[Candidate]:
    """Return the best of the first candidates with a penalty, or with dropout.

    A penalty that is asked for is the only one, but V-REx beside IRM; so is a weight other than the default.

    Examples
    --------
    >>> for candidate in variants(Candidate(), Goal()):
    ...     print(candidate)
    whole, irm 10
    whole, vrex 1000
    whole, irm 100
    whole, vrex 100
    whole, dropout 0.5
    """
    name = goal.penalty if isinstance(goal.penalty, str) else "own"
    if name == "irm" and goal.penalty_weight == Goal.penalty_weight:
        penalties = [("irm", 10.0), ("vrex", 1000.0), ("irm", 100.0), ("vrex", 100.0)]
    else:
        penalties = [] if name == "none" else [(name, goal.penalty_weight)]
    made = [replace(best, penalty=name, penalty_weight=weight) for name, weight in penalties]
    return [*made, replace(best, dropout=0.5)] if dropout else made


def member_network(
    candidate: Candidate,
    network: str | nn.Module,
    view: Callable[[], nn.Module],
    row: Tensor,
    *,
    n_classes: int,
    n_domains: int,
    seed: int,
) -> SplitNetwork:
    """Return one network of a search: f_S behind a view, Φ_U of the whole row.

    Examples
    --------
    >>> import torch
    >>> net = member_network(Candidate(), "narrow", nn.Identity, torch.zeros(2, 3), n_classes=2, n_domains=2,
    ...                      seed=0)
    >>> net.n_stable, net.n_unstable
    (100, 1)
    """
    name = "narrow" if isinstance(network, str) and network == "auto" else network

    def trunk(dropout: float) -> nn.Module:
        return make_network(name, row.shape[1:], dropout=dropout)

    return build_network(
        lambda: nn.Sequential(view(), trunk(candidate.dropout)),
        row,
        split="separate",
        n_classes=n_classes,
        n_domains=n_domains,
        seed=seed,
        make_unstable_trunk=lambda: trunk(0.0),
    )
