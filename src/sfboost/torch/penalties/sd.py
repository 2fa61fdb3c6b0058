"""Spectral decoupling (Pezeshki et al., 2021): small logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfboost.torch.outputs import DomainOutput


class SpectralDecoupling(nn.Module):
    """Mean over domains and rows of the squared norm of the logits; zero at logits of zero.

    Features that are learned first make the loss so small that others get no gradient; logits that must stay
    small leave some for them.

    With two classes this is the mean squared log-odds.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[0.0, 2.0]])
    >>> SpectralDecoupling()([DomainOutput(logits, logits, torch.eye(2)[:1])]).item()
    4.0

    References
    ----------
    .. [1] M. Pezeshki, S.-O. Kaba, Y. Bengio et al. (2021). Gradient Starvation: A Learning Proclivity in
       Neural Networks. NeurIPS 34.
    """

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        return torch.stack([domain.stable_logits.square().sum(1).mean() for domain in domains]).mean()
