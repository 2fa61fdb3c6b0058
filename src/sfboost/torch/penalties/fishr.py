"""Fishr (Rame et al., 2022): equal variances of the head's per-row gradients in every domain."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfboost.torch.outputs import DomainOutput


class Fishr(nn.Module):
    """Mean over domains of ‖v_e − v̄‖², v_e the variance over rows of the gradient in the head.

    Rows pull the head into directions; domains in which they pull apart by different amounts are not alike to
    it.

    The head is its weights and its bias. For a linear head the gradient of a row is (p − y)(φ, 1)ᵀ, so
    variances are two matrix products and no per-row backward pass is needed. Zero when the domains are alike.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(2, 2)
    >>> Fishr()([DomainOutput(zeros, zeros, torch.eye(2))] * 2).item()
    0.0

    References
    ----------
    .. [1] A. Rame, C. Dancette and M. Cord (2022). Fishr: Invariant Gradient Variances for
       Out-of-Distribution Generalization. ICML.
    """

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        variances = torch.stack([_gradient_variance(domain) for domain in domains])
        return (variances - variances.mean(0)).square().sum((1, 2)).mean()


def _gradient_variance(domain: DomainOutput) -> Tensor:
    residual = domain.residual
    if residual.shape[1] == 2:
        residual = residual[:, 1:]  # the two columns are each other's negative: one log-odds, counted once
    features = torch.cat([domain.stable_features, torch.ones_like(residual[:, :1])], dim=1)
    mean = residual.T @ features / len(features)
    second_moment = residual.square().T @ features.square() / len(features)
    return second_moment - mean.square()
