"""Networks of the same shape, each trained without a part of the rows, as one whose answer is their mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sfboost.torch.split_network import SplitNetwork


class Ensemble(nn.Module):
    """The mean of several `SplitNetwork`: of their stable logits, and of what their Φ_U say.

    Φ_U is the logit that the unstable head of one domain gives it: each network begins with a direction of
    its own, and the mean of features that point different ways says nothing. Of more than two classes the
    logits are centred: what all classes share says nothing about which one it is.

    Parameters
    ----------
    members : sequence of SplitNetwork
    surest : int
        The domain whose head is taken, see `surest_domain`.

    Examples
    --------
    >>> members = [SplitNetwork(nn.Linear(2, 3), n_features=3, n_classes=2, n_domains=2, n_unstable=1,
    ...                         unstable_trunk=nn.Linear(2, 3)) for _ in "abc"]
    >>> [part.shape for part in Ensemble(members).features(torch.zeros(5, 2))]
    [torch.Size([5, 9]), torch.Size([5, 1])]
    """

    surest: Tensor

    def __init__(self, members: Sequence[SplitNetwork], surest: int = 0) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.n_unstable = len(members[0].stable_head.weight)
        self.register_buffer("surest", torch.tensor(surest))

    def stable_features(self, x: Tensor) -> Tensor:
        """Return Φ_S of all members next to each other."""
        members: Any = self.members
        return torch.cat([member.stable_features(x) for member in members], dim=1)

    def unstable_features(self, x: Tensor) -> Tensor:
        """Return Φ_U(x)."""
        return torch.stack([self.said(member, x) for member in self.members]).mean(0)

    def said(self, member: Any, x: Tensor) -> Tensor:
        """Return the logits of one member's unstable head."""
        head = int(self.surest)
        logits = member.unstable_features(x) @ member.unstable_weight[head].T + member.unstable_bias[head]
        return logits if logits.shape[1] == 1 else logits - logits.mean(1, keepdim=True)

    def features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (Φ_S(x), Φ_U(x))."""
        return self.stable_features(x), self.unstable_features(x)

    def stable_logits(self, stable_features: Tensor) -> Tensor:
        """Return the K logits of f_S."""
        parts = stable_features.chunk(len(self.members), dim=1)
        members: Any = self.members
        logits = [member.stable_logits(part) for member, part in zip(members, parts, strict=True)]
        return torch.stack(logits).mean(0)


def surest_domain(members: Sequence[SplitNetwork]) -> int:
    """Return the domain in which the unstable features say most.

    Examples
    --------
    >>> net = SplitNetwork(nn.Linear(2, 4), n_features=4, n_classes=2, n_domains=2)
    >>> with torch.no_grad():
    ...     _ = net.unstable_weight[1].mul_(3.0)
    >>> surest_domain([net])
    1
    """
    sizes = [member.unstable_weight.detach().flatten(1).norm(dim=1) for member in members]
    return int(torch.stack(sizes).mean(0).argmax())
