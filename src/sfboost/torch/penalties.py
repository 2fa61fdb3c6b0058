"""Penalties of Eq. 5.1: how far a predictor is from being stable, and Φ_S and Φ_U from independent.

A penalty is an ``nn.Module`` called with the outputs of each training domain and the parameters that the risk
depends on; it returns one number. `SFBClassifier` takes the name of one that stands here, or any module. Its
class says ``second_order = True`` if it needs the second derivative of the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from sfboost.registry import unknown
from sfboost.torch.outputs import DomainOutput


class NoPenalty(nn.Module):
    """Always zero.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(2, 2)
    >>> NoPenalty()([DomainOutput(zeros, zeros, torch.eye(2))]).item()
    0.0
    """

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return zero."""
        return domains[0].stable_logits.new_zeros(())


class IRM(nn.Module):
    """IRMv1: mean over domains of the squared gradient in a dummy scale on the logits.

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
        gradients = torch.stack([scale_gradients(domain).mean() for domain in domains])
        return gradients.square().mean()


def scale_gradients(domain: DomainOutput) -> Tensor:
    """Of each row's loss in a scale on the logits, at 1: Σ_k f_k (p_k − y_k), without a backward pass."""
    return (domain.stable_logits * domain.residual).sum(1)


class VREx(nn.Module):
    """V-REx: population variance of the domain risks; zero when they are equal.

    What works equally well everywhere has nothing to lose where it has not been: risks that differ between
    training domains may differ more in a new one.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(2, 2)
    >>> VREx()([DomainOutput(zeros, zeros, torch.eye(2))] * 2).item()
    0.0

    References
    ----------
    .. [1] D. Krueger, E. Caballero, J.-H. Jacobsen et al. (2021). Out-of-Distribution Generalization via Risk
       Extrapolation (REx). ICML.
    """

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        risks = torch.stack([domain.risk for domain in domains])
        return (risks - risks.mean()).square().mean()


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


class LogitProxy(nn.Module):
    """ACTIR's proxy (Jiang & Veitch, 2022, 3.1): mean of Σ_k |E[f_S,k (f_U,k − E[f_U,k | Y])]| over domains.

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
    if domain.unstable_logits is None:
        raise ValueError("An independence penalty needs unstable logits; these outputs are stable only.")
    return (domain.stable_logits * within_class(domain.unstable_logits, domain.target)).mean(0)


#: P_Stab by name.
STABILITY_PENALTIES: dict[str, type[nn.Module]] = {"irm": IRM, "vrex": VREx, "none": NoPenalty}
#: P_CI by name.
INDEPENDENCE_PENALTIES: dict[str, type[nn.Module]] = {"proxy": LogitProxy, "none": NoPenalty}


def make_stability_penalty(penalty: str | nn.Module) -> nn.Module:
    """Return the penalty of this name, or the module itself.

    Examples
    --------
    >>> make_stability_penalty("vrex")
    VREx()
    """
    return _named("stability penalty", STABILITY_PENALTIES, penalty)


def make_independence_penalty(penalty: str | nn.Module) -> nn.Module:
    """Return the penalty of this name, or the module itself.

    Examples
    --------
    >>> make_independence_penalty("proxy")
    LogitProxy()
    """
    return _named("independence penalty", INDEPENDENCE_PENALTIES, penalty)


def _named(kind: str, listed: Mapping[str, type[nn.Module]], asked: str | nn.Module) -> nn.Module:
    if isinstance(asked, nn.Module):
        return asked
    if asked not in listed:
        raise ValueError(f"{unknown(kind, asked, listed)} Or pass an nn.Module.")
    return listed[asked]()
