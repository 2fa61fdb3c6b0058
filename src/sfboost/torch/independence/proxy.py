"""ACTIR's proxy of conditional independence (Jiang & Veitch, 2022, 3.1): a within-class covariance."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfboost.torch.outputs import DomainOutput


def within_class(values: Tensor, target: Tensor) -> Tensor:
    """Subtract each class's mean from its rows.

    Rows of a class that occurs once become zero, so they drop out of a covariance by themselves.

    Examples
    --------
    >>> import torch
    >>> within_class(torch.tensor([[1.0], [3.0], [7.0]]), torch.eye(2)[[0, 0, 1]]).flatten().tolist()
    [-1.0, 1.0, 0.0]
    """
    counts = target.sum(0).clamp_min(1.0)
    means = (target.T @ values) / counts[:, None]
    return values - target @ means


def _unstable(domain: DomainOutput) -> tuple[Tensor, Tensor]:
    if domain.unstable_features is None or domain.unstable_logits is None:
        raise ValueError(
            "An independence penalty needs unstable features and logits; these outputs are stable only."
        )
    return domain.unstable_features, domain.unstable_logits


class LogitProxy(nn.Module):
    """Mean over domains of Σ_k |E[f_S,k (f_U,k − E[f_U,k | Y])]|, on the logits.

    Zero when stable and unstable logits are uncorrelated within classes; zero covariance is less than
    independence, and covariances of opposite sign in two classes cancel.

    Examples
    --------
    >>> import torch
    >>> f, y = torch.zeros(2, 2), torch.eye(2)
    >>> LogitProxy()([DomainOutput(f, f, y, f, f)]).item()
    0.0
    """

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        return torch.stack([logit_covariance(domain).abs().sum() for domain in domains]).mean()


def logit_covariance(domain: DomainOutput) -> Tensor:
    """Return r_k, the covariance within classes of matching logits.

    Examples
    --------
    >>> import torch
    >>> f = torch.tensor([[0.0, 1.0], [0.0, -1.0]])
    >>> logit_covariance(DomainOutput(f, f, torch.eye(2)[[0, 0]], f, f)).tolist()
    [0.0, 1.0]
    """
    _, unstable = _unstable(domain)
    return (domain.stable_logits * within_class(unstable, domain.target)).mean(0)


class FeatureProxy(nn.Module):
    """Mean over domains of Σ_jk |E[Φ_S,j (Φ_U,k − E[Φ_U,k | Y])]|, on all pairs of features.

    Examples
    --------
    >>> import torch
    >>> f, y = torch.zeros(2, 2), torch.eye(2)
    >>> FeatureProxy()([DomainOutput(f, f, y, f, f)]).item()
    0.0
    """

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        return torch.stack([self._covariance(domain).abs().sum() for domain in domains]).mean()

    @staticmethod
    def _covariance(domain: DomainOutput) -> Tensor:
        unstable, _ = _unstable(domain)
        return domain.stable_features.T @ within_class(unstable, domain.target) / len(unstable)
