"""Class-conditional HSIC (Gretton et al., 2005): a kernel measure, zero only for independence."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfboost.torch.outputs import DomainOutput


def hsic(x: Tensor, y: Tensor, scale: float = 1.0) -> Tensor:
    """Return the biased HSIC, tr(K H L H) / (m − 1)², with kernels exp(−‖·‖² / scale).

    Examples
    --------
    >>> import torch
    >>> abs(round(hsic(torch.zeros(3, 1), torch.arange(3.0)[:, None]).item(), 5))
    0.0
    """
    k, centred = _kernel(x, scale), _kernel(y, scale)
    # Centring one of the two kernels is enough under the trace.
    centred = centred - centred.mean(0) - centred.mean(1, keepdim=True) + centred.mean()
    return (k * centred).sum() / (len(x) - 1) ** 2


def _kernel(x: Tensor, scale: float) -> Tensor:
    squares = x.square().sum(1)
    distances = squares[:, None] + squares[None] - 2.0 * x @ x.T
    return torch.exp(-distances.clamp_min(0.0) / scale)


class ConditionalHSIC(nn.Module):
    """Mean over domains and classes of the HSIC of Φ_S and Φ_U within the class.

    Parameters
    ----------
    scale : float
        Scale of both Gaussian kernels.
    max_rows : int
        Rows drawn at random from each domain: the kernel is quadratic in them.

    Examples
    --------
    >>> import torch
    >>> f, y = torch.zeros(4, 1), torch.eye(2).repeat(2, 1)
    >>> ConditionalHSIC()([DomainOutput(f, f, y, f, f)]).item()
    0.0
    """

    def __init__(self, *, scale: float = 1.0, max_rows: int = 512) -> None:
        super().__init__()
        self.scale = scale
        self.max_rows = max_rows

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        return torch.stack([self._domain(domain) for domain in domains]).mean()

    def _domain(self, domain: DomainOutput) -> Tensor:
        stable, unstable, target = domain.stable_features, domain.unstable_features, domain.target
        if unstable is None:
            raise ValueError(
                "An independence penalty needs unstable features; these outputs are stable only."
            )
        if len(stable) > self.max_rows:
            rows = torch.randperm(len(stable))[: self.max_rows].to(stable.device)
            stable, unstable, target = stable[rows], unstable[rows], target[rows]
        values = []
        for k in range(target.shape[1]):
            members = target[:, k] > 0
            if int(members.sum()) >= 2:
                values.append(hsic(stable[members], unstable[members], self.scale))
        return torch.stack(values).mean() if values else stable.new_zeros(())
