"""V-REx (Krueger et al., 2021): the variance of the domain risks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfboost.torch.outputs import DomainOutput


class VREx(nn.Module):
    """Population variance of the domain risks; zero when they are equal.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(2, 2)
    >>> VREx()([DomainOutput(zeros, zeros, torch.eye(2))] * 2).item()
    0.0
    """

    stackable = True

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        risks = torch.stack([domain.risk for domain in domains])
        return (risks - risks.mean()).square().mean()
