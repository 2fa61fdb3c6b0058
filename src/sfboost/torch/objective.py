"""The objective of Eq. 5.1, as means over training domains: each domain has one vote whatever its size.

With R the risk, C the combination with the domain's prior (Eq. 4.7) and P the penalties:

    mean_e R^e(h_S∘Φ_S) + mean_e R^e(C(h_S∘Φ_S, h_U^e∘Φ_U)) + λ_S·P_Stab + λ_C·P_CI
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sfboost.torch.outputs import DomainOutput, cross_entropy


class LossParts(NamedTuple):
    """The loss and what it is made of (penalties before their weights)."""

    total: Tensor
    stable: Tensor
    joint: Tensor
    penalty: Tensor
    independence: Tensor


def joint_logits(domain: DomainOutput, log_prior: Tensor, *, detach_stable: bool = False) -> Tensor:
    """Combine stable and unstable logits: log p_S + log p_U − log p, up to a constant per row (Eq. 4.7).

    Examples
    --------
    >>> import torch
    >>> z = torch.tensor([[0.0, 1.0]])
    >>> joint_logits(DomainOutput(z, z, z, z, z), torch.log(torch.tensor([0.5, 0.5]))).diff().item()
    2.0
    """
    if domain.unstable_logits is None:
        raise ValueError("The joint risk needs unstable logits; these outputs are stable only.")
    stable = domain.stable_logits.detach() if detach_stable else domain.stable_logits
    return stable + domain.unstable_logits - log_prior


@dataclass(frozen=True)
class NetworkObjective:
    """Eq. 5.1 or a part of it, to be called with the outputs of every training domain.

    Parameters
    ----------
    log_prior : Tensor of shape (domains, K)
        Log of each domain's label frequencies.
    penalty, independence : nn.Module
        P_Stab and P_CI.
    penalty_weight, independence_weight : float or Tensor
        λ_S and λ_C.
    risks : {"both", "stable", "joint"}
        Which risks count: both (Eq. 5.1), or one stage of ``split="separate"``.
    gamma : float, optional
        γ·stable + (1 − γ)·joint risk instead of their sum.
    detach_stable : bool
        Keep the joint risk from changing f_S.
    rescale : bool
        Divide the whole loss by λ_S where that is above 1, so that the step size does not depend on it.

    Examples
    --------
    >>> import torch
    >>> from sfboost.torch.penalties import IRM, LogitProxy
    >>> z, y = torch.zeros(2, 2), torch.eye(2)
    >>> objective = NetworkObjective(torch.full((1, 2), 0.5).log(), IRM(), LogitProxy())
    >>> round(objective([DomainOutput(z, z, y, z, z)]).total.item(), 4)
    1.3863
    """

    log_prior: Tensor
    penalty: nn.Module
    independence: nn.Module
    penalty_weight: float | Tensor = 1.0
    independence_weight: float | Tensor = 1.0
    risks: str = "both"
    gamma: float | None = None
    detach_stable: bool = False
    rescale: bool = False

    def __call__(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> LossParts:
        """Return the loss and its parts."""
        zero = domains[0].stable_logits.new_zeros(())
        stable = joint = penalty = independence = zero
        total = zero
        stable_share, joint_share = (1.0, 1.0) if self.gamma is None else (self.gamma, 1.0 - self.gamma)
        if self.risks != "joint":
            stable = torch.stack([domain.risk for domain in domains]).mean()
            penalty = self.penalty(domains, parameters)
            total = total + stable_share * stable + self.penalty_weight * penalty
        if self.risks != "stable":
            joint = self._joint_risk(domains)
            independence = self.independence(domains, parameters)
            total = total + joint_share * joint + self.independence_weight * independence
        if self.rescale and self.risks != "joint":
            total = total / torch.as_tensor(self.penalty_weight).clamp_min(1.0).to(total)
        return LossParts(total, stable, joint, penalty, independence)

    def _joint_risk(self, domains: Sequence[DomainOutput]) -> Tensor:
        risks = [
            cross_entropy(joint_logits(domain, prior, detach_stable=self.detach_stable), domain.target)
            for domain, prior in zip(domains, self.log_prior, strict=True)
        ]
        return torch.stack(risks).mean()
