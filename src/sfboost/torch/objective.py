"""The objective of Eq. 5.1, as means over training domains: each domain has one vote whatever its size.

With R the risk, C the combination with the domain's prior (Eq. 4.7) and P the penalties:

    mean_e R^e(h_S∘Φ_S) + mean_e R^e(C(h_S∘Φ_S, h_U^e∘Φ_U)) + λ_S·P_Stab + λ_C·P_CI
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    stability: Tensor
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
class Objective:
    """Eq. 5.1 or a part of it, to be called with the outputs of every training domain.

    Parameters
    ----------
    log_prior : Tensor of shape (domains, K)
        Log of each domain's label frequencies.
    stability, independence : nn.Module
        The penalties.
    stability_weight, independence_weight : float or Tensor
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
    >>> from sfboost.torch.independence import LogitProxy
    >>> from sfboost.torch.penalties import IRM
    >>> z, y = torch.zeros(2, 2), torch.eye(2)
    >>> objective = Objective(torch.full((1, 2), 0.5).log(), IRM(), LogitProxy())
    >>> round(objective([DomainOutput(z, z, y, z, z)]).total.item(), 4)
    1.3863
    """

    log_prior: Tensor
    stability: nn.Module
    independence: nn.Module
    stability_weight: float | Tensor = 1.0
    independence_weight: float | Tensor = 1.0
    risks: str = "both"
    gamma: float | None = None
    detach_stable: bool = False
    rescale: bool = False

    def __call__(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> LossParts:
        """Return the loss and its parts."""
        zero = domains[0].stable_logits.new_zeros(())
        stable = joint = stability = independence = zero
        total = zero
        stable_share, joint_share = (1.0, 1.0) if self.gamma is None else (self.gamma, 1.0 - self.gamma)
        if self.risks != "joint":
            stable = torch.stack([domain.risk for domain in domains]).mean()
            stability = self.stability(domains, parameters)
            total = total + stable_share * stable + self.stability_weight * stability
        if self.risks != "stable":
            joint = self._joint_risk(domains)
            independence = self.independence(domains, parameters)
            total = total + joint_share * joint + self.independence_weight * independence
        if self.rescale and self.risks != "joint":
            total = total / torch.as_tensor(self.stability_weight).clamp_min(1.0).to(total)
        return LossParts(total, stable, joint, stability, independence)

    def _joint_risk(self, domains: Sequence[DomainOutput]) -> Tensor:
        risks = [
            cross_entropy(joint_logits(domain, prior, detach_stable=self.detach_stable), domain.target)
            for domain, prior in zip(domains, self.log_prior, strict=True)
        ]
        return torch.stack(risks).mean()


class ACTIRObjective:
    """The objective of ACTIR (Jiang & Veitch, 2022) as its authors coded it.

    Σ_e γ·CE(f_S + f_U) + (1 − γ)·CE(f_S) + λ₂·mean((∂/∂η_e [CE(f_S + f_U) + λ·proxy])²), averaged over domains,
    where f_S is the first K features and f_U = Φ·η_e uses all of them. The gradient in η_e is written out:
    Φᵀ(p − y)/n + λ·sign(r)·(Φ − E[Φ|Y])ᵀf_S/n, so no second backward pass is needed.

    Parameters
    ----------
    proxy_weight : float or Tensor
        λ.
    gradient_weight : float or Tensor
        λ₂.
    gamma : float
        γ.

    Examples
    --------
    >>> import torch
    >>> features, eta, y = torch.zeros(4, 3), torch.zeros(1, 3, 2), torch.eye(2).repeat(2, 1)
    >>> round(ACTIRObjective(1.0, 1.0)(features, eta, y, (4,)).total.item(), 4)
    0.6931
    """

    def __init__(
        self, proxy_weight: float | Tensor, gradient_weight: float | Tensor, *, gamma: float = 0.9
    ) -> None:
        self.proxy_weight = proxy_weight
        self.gradient_weight = gradient_weight
        self.gamma = gamma

    def __call__(self, features: Tensor, eta: Tensor, target: Tensor, sizes: Sequence[int]) -> LossParts:
        """Return the loss and its parts; `stability` is the gradient penalty."""
        from sfboost.torch.independence.proxy import within_class

        rows = zip(features.split(list(sizes)), target.split(list(sizes)), eta, strict=True)
        parts = []
        for phi, y, eta_e in rows:
            f_stable, f_unstable = phi[:, : y.shape[1]], phi @ eta_e
            residual = (f_stable + f_unstable).softmax(1) - y
            covariance = (f_stable * within_class(f_unstable, y)).mean(0)
            slope = within_class(phi, y).T @ f_stable / len(y)
            gradient = phi.T @ residual / len(y) + self.proxy_weight * covariance.detach().sign() * slope
            parts.append(
                torch.stack(
                    [
                        cross_entropy(f_stable, y),
                        cross_entropy(f_stable + f_unstable, y),
                        gradient.square().mean(),
                        covariance.abs().sum(),
                    ]
                )
            )
        stable, joint, stationarity, proxy = torch.stack(parts).mean(0)
        total = self.gamma * joint + (1 - self.gamma) * stable + self.gradient_weight * stationarity
        return LossParts(total, stable, joint, stationarity, proxy)


LossFunction = Callable[[Sequence[DomainOutput], Sequence[Tensor]], LossParts]
