"""EQRM (Eastwood et al., 2022): an upper quantile of the distribution of domain risks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfboost.torch.outputs import DomainOutput

_BISECTIONS = 60
_SMALLEST_VARIANCE = 1e-24


class EQRM(nn.Module):
    """The α-quantile of a Gaussian kernel density of the domain risks, minus their mean.

    Training domains are draws from many: a predictor is good with probability α if the α-quantile of its risk
    is low, between the mean (average case) and the worst.

    ``mean risk + 1 · penalty`` is the EQRM objective. Zero when the risks are equal.

    Parameters
    ----------
    alpha : float, optional
        The quantile, between 0 and 1.
    log_tail : float, optional
        log(1 − α) instead of α, for quantiles that no float can hold (the paper goes to −1000). The
        quantile is then that of the tail, mean + bandwidth · √(−2 log(1 − α)). Exactly one of the two is
        needed.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(2, 2)
    >>> round(EQRM(alpha=0.9)([DomainOutput(zeros, zeros, torch.eye(2))] * 2).item(), 6)
    0.0

    References
    ----------
    .. [1] C. Eastwood, A. Robey, S. Singh et al. (2022). Probable Domain Generalization via Quantile Risk
       Minimization. NeurIPS 35.
    """

    def __init__(self, alpha: float | None = None, *, log_tail: float | None = None) -> None:
        super().__init__()
        if alpha is None and log_tail is None:
            log_tail = -1000.0
        if alpha is not None and log_tail is not None:
            raise ValueError(
                f"EQRM takes alpha or log_tail, got both ({alpha} and {log_tail}). Leave one out."
            )
        if alpha is not None and not 0 < alpha < 1:
            raise ValueError(
                f"EQRM needs alpha between 0 and 1, got {alpha}. For α near 1 pass log_tail=log(1-α)."
            )
        if log_tail is not None and not log_tail < 0:
            raise ValueError(f"log_tail is log(1 - α) and so below 0, got {log_tail}.")
        self.alpha = alpha
        self.log_tail = log_tail

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        risks = torch.stack([domain.risk for domain in domains])
        if len(risks) < 2:
            return risks.new_zeros(())
        # The clamp keeps the square root differentiable where all risks are equal.
        deviation = risks.var(correction=1).clamp_min(_SMALLEST_VARIANCE).sqrt()
        bandwidth = 1.06 * deviation * len(risks) ** -0.2
        if self.log_tail is not None:
            return bandwidth * math.sqrt(-2.0 * self.log_tail)
        assert self.alpha is not None
        return kernel_quantile(risks, bandwidth, self.alpha) - risks.mean()


def kernel_quantile(values: Tensor, bandwidth: Tensor, alpha: float) -> Tensor:
    """Return the α-quantile of a Gaussian kernel density, differentiable in values and bandwidth.

    Found by bisection; one Newton step on the graph then carries the gradient of the implicit function.

    Examples
    --------
    >>> import torch
    >>> kernel_quantile(torch.tensor([1.0, 3.0]), torch.tensor(0.5), 0.5).item()
    2.0
    """
    fixed, width = values.detach(), bandwidth.detach()
    reach = 40.0 * width
    low, high = fixed.min() - reach, fixed.max() + reach
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = torch.special.ndtr((middle - fixed) / width).mean() < alpha
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    middle = (low + high) / 2
    density = torch.exp(-0.5 * ((middle - fixed) / width).square()).mean() / (width * math.sqrt(2 * math.pi))
    distance = torch.special.ndtr((middle - values) / bandwidth).mean() - alpha
    return middle - distance / density
