"""ACTIR (Jiang & Veitch, 2022): its network and its objective, as its authors coded them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfboost.torch.objective import LossParts, cross_entropy, within_class


class ACTIRNetwork(nn.Module):
    """Features Φ whose first K coordinates are the stable logits, and one matrix η_e per training domain.

    Parameters
    ----------
    trunk : nn.Module
        Maps a batch to (n, width).
    width : int
        Width of the trunk's output.
    n_features : int
        Features d, at least K.
    n_classes, n_domains : int
        Classes; training domains. η starts at zero.

    Examples
    --------
    >>> import torch
    >>> net = ACTIRNetwork(torch.nn.Linear(2, 8), width=8, n_features=3, n_classes=2, n_domains=2)
    >>> net(torch.zeros(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(
        self, trunk: nn.Module, *, width: int, n_features: int, n_classes: int, n_domains: int
    ) -> None:
        super().__init__()
        if n_features < n_classes:
            raise ValueError(
                f"ACTIR needs at least as many features as classes, got {n_features} and {n_classes}."
            )
        self.trunk = trunk
        self.projection = nn.Linear(width, n_features)
        self.eta = nn.Parameter(torch.zeros(n_domains, n_features, n_classes))

    def forward(self, x: Tensor) -> Tensor:
        """Return Φ(x)."""
        features: Tensor = self.projection(self.trunk(x))
        return features


class ACTIRObjective:
    """The objective: both risks, and how far each η_e is from its own optimum.

    Σ_e γ·CE(f_S + f_U) + (1 − γ)·CE(f_S) + λ₂·mean((∂/∂η_e [CE(f_S + f_U) + λ·proxy])²), averaged over
    domains, where f_S is the first K features and f_U = Φ·η_e uses all of them. The gradient in η_e is
    written out: Φᵀ(p − y)/n + λ·sign(r)·(Φ − E[Φ|Y])ᵀf_S/n, so no second backward pass is needed.

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
        """Return the loss and its parts; `penalty` is that of the gradient."""
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
