"""IGA (Koyama & Yamaguchi, 2020): the same gradient of the risk in every domain."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfboost.torch.outputs import DomainOutput


class IGA(nn.Module):
    """Sum over domains of ‖∇R_e − mean‖², the mean taken as a constant. Zero when the gradients are equal.

    Where all domains pull the network the same way, it learns what they share.

    The gradient is that of every parameter of the stable predictor, so this penalty needs the second
    derivative of the network.

    Examples
    --------
    >>> import torch
    >>> weight = torch.zeros(1, 2, requires_grad=True)
    >>> features = torch.ones(2, 1)
    >>> domain = DomainOutput(features, features @ weight, torch.eye(2))
    >>> IGA()([domain, domain], [weight]).item()
    0.0

    References
    ----------
    .. [1] M. Koyama and S. Yamaguchi (2020). Out-of-Distribution Generalization with Maximal Invariant
       Predictor. arXiv:2008.01883.
    """

    second_order = True

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        if not parameters:
            raise ValueError(
                "The penalty 'iga' needs the network's parameters as its second argument, got none."
            )
        gradients = torch.stack([_flat_gradient(domain.risk, parameters) for domain in domains])
        return (gradients - gradients.mean(0).detach()).square().sum()


def _flat_gradient(risk: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    gradients = torch.autograd.grad(risk, list(parameters), create_graph=True, materialize_grads=True)
    return torch.cat([gradient.flatten() for gradient in gradients])
