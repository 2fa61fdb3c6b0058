"""IRMv1 (Arjovsky et al., 2019) in three forms, all without a second backward pass.

With a dummy scale w on the logits, ∂/∂w R^e(w·f) at w = 1 is the mean over rows of Σ_k f_k (p_k − y_k).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfboost.torch.outputs import DomainOutput


def _row_scale_gradients(domain: DomainOutput) -> Tensor:
    return (domain.stable_logits * domain.residual).sum(1)


class IRM(nn.Module):
    """Mean over domains of the squared gradient in the dummy scale.

    If one classifier is the best in every domain, scaling its logits helps in none. So the derivative of each
    domain's risk in a scale on the logits says how far it is from that.

    Zero where scaling the logits lowers no domain's risk.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(4, 2)
    >>> IRM()([DomainOutput(zeros, zeros, torch.eye(2).repeat(2, 1))]).item()
    0.0

    References
    ----------
    .. [1] M. Arjovsky, L. Bottou, I. Gulrajani and D. Lopez-Paz (2019). Invariant Risk Minimization.
       arXiv:1907.02893.
    """

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        gradients = torch.stack([_row_scale_gradients(domain).mean() for domain in domains])
        return gradients.square().mean()


class IRMSplit(nn.Module):
    """IRM with the square replaced by the product of the gradients on even and odd rows.

    Its expectation over batches is the square of the population gradient; on one batch it may be negative.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(4, 2)
    >>> IRMSplit()([DomainOutput(zeros, zeros, torch.eye(2).repeat(2, 1))]).item()
    0.0

    References
    ----------
    .. [1] M. Arjovsky, L. Bottou, I. Gulrajani and D. Lopez-Paz (2019). Invariant Risk Minimization.
       arXiv:1907.02893.
    """

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        products = []
        for domain in domains:
            rows = _row_scale_gradients(domain)
            if len(rows) < 2:
                raise ValueError(
                    "The penalty 'irm-split' multiplies the gradients of even and odd rows, and a "
                    "domain has only "
                    "1 row in this batch. Use a larger batch_size, or penalty='irm'."
                )
            products.append(rows[0::2].mean() * rows[1::2].mean())
        return torch.stack(products).mean()


class IRMMatrix(nn.Module):
    """ACTIR's form: mean square of the gradient in the whole matrix that maps Φ_S to logits.

    Zero where the stable head is optimal in every domain. With two classes the matrix is the one column of
    the log-odds.

    Examples
    --------
    >>> import torch
    >>> features, zeros = torch.ones(4, 1), torch.zeros(4, 2)
    >>> IRMMatrix()([DomainOutput(features, zeros, torch.eye(2).repeat(2, 1))]).item()
    0.0

    References
    ----------
    .. [1] M. Arjovsky, L. Bottou, I. Gulrajani and D. Lopez-Paz (2019). Invariant Risk Minimization.
       arXiv:1907.02893.
    .. [2] Y. Jiang and V. Veitch (2022). Invariant and Transportable Representations for Anti-Causal Domain
       Shifts. NeurIPS 35.
    """

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        return torch.stack([_matrix_gradient(domain).square().mean() for domain in domains]).mean()


def _matrix_gradient(domain: DomainOutput) -> Tensor:
    residual = domain.residual
    if residual.shape[1] == 2:
        residual = residual[:, 1:]
    return domain.stable_features.T @ residual / len(residual)
