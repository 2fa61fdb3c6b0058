"""GroupDRO (Sagawa et al., 2020): more weight for the domains with the larger risks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfboost.torch.outputs import DomainOutput


class GroupDRO(nn.Module):
    """Σ_e q_e R_e minus the mean risk, with q_e ∝ q_e exp(η R_e) updated at every call in training.

    What is good in the worst domain is good in all: weights move to the domains that are served worst.

    ``mean risk + 1 · penalty`` is the GroupDRO objective. Zero when the risks are equal.

    Parameters
    ----------
    step_size : float
        η.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(2, 2)
    >>> GroupDRO()([DomainOutput(zeros, zeros, torch.eye(2))] * 2).item()
    0.0

    References
    ----------
    .. [1] S. Sagawa, P. W. Koh, T. B. Hashimoto and P. Liang (2020). Distributionally Robust Neural Networks
       for Group Shifts. ICLR.
    """

    def __init__(self, *, step_size: float = 0.01) -> None:
        super().__init__()
        self.step_size = step_size
        self.log_weights: Tensor
        # Log-weights start at equal; the shape is known with the first call.
        self.register_buffer("log_weights", torch.zeros(0, dtype=torch.float64))

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty, and move the weights if in training mode."""
        risks = torch.stack([domain.risk for domain in domains])
        log_weights = (
            self.log_weights if len(self.log_weights) else torch.zeros(len(risks), dtype=torch.float64)
        )
        if self.training:
            log_weights = (
                log_weights.to(risks.device) + self.step_size * risks.detach().double()
            ).log_softmax(0)
            self.log_weights = log_weights
        weights = log_weights.softmax(0).to(risks)
        return (weights * risks).sum() - risks.mean()

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: object) -> None:
        # The saved weights have one entry per domain, the fresh buffer none yet.
        saved = state_dict.get(prefix + "log_weights")
        if saved is not None:
            self.log_weights = torch.zeros_like(saved)
        super()._load_from_state_dict(state_dict, prefix, *args)
