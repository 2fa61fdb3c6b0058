"""V-REx (Krueger et al., 2021): the variance of the domain risks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfboost.torch.outputs import DomainOutput


class VREx(nn.Module):
    """Population variance of the domain risks; zero when they are equal.

    What works equally well everywhere has nothing to lose where it has not been: risks that differ between
    training domains may differ more in a new one.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(2, 2)
    >>> VREx()([DomainOutput(zeros, zeros, torch.eye(2))] * 2).item()
    0.0

    References
    ----------
    .. [1] D. Krueger, E. Caballero, J.-H. Jacobsen et al. (2021). Out-of-Distribution Generalization via Risk
       Extrapolation (REx). ICML.
    """

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        risks = torch.stack([domain.risk for domain in domains])
        return (risks - risks.mean()).square().mean()
