"""Eq. 5.1: what is minimised. Risks and penalties of what a network says of each training domain.

With R the risk, C the combination with the domain's prior (Eq. 4.7) and P the penalties, as means over
domains, so that each has one vote whatever its size:

    mean_e R^e(h_S∘Φ_S) + mean_e R^e(C(h_S∘Φ_S, h_U^e∘Φ_U)) + λ_S·P_Stab + λ_C·P_CI

A penalty is an ``nn.Module`` called with the outputs of each training domain and the parameters that the risk
depends on; it returns one number. `SFBClassifier` takes the name of one that stands here, or any module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sfboost.registry import unknown


@dataclass(frozen=True)
class DomainOutput:
    """Features, logits and targets of one domain's rows.

    Attributes
    ----------
    stable_features : Tensor of shape (n, d_S)
        Φ_S(X).
    stable_logits : Tensor of shape (n, K)
        h_S(Φ_S(X)). With two classes the first column is zero, the second the log-odds.
    target : Tensor of shape (n, K)
        One-hot labels, in the logits' type.
    unstable_features : Tensor of shape (n, d_U), optional
        Φ_U(X).
    unstable_logits : Tensor of shape (n, K), optional
        h_U^e(Φ_U(X)), by this domain's own head.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(4, 2)
    >>> round(DomainOutput(zeros, zeros, torch.eye(2).repeat(2, 1)).risk.item(), 4)
    0.6931
    """

    stable_features: Tensor
    stable_logits: Tensor
    target: Tensor
    unstable_features: Tensor | None = None
    unstable_logits: Tensor | None = None

    @property
    def risk(self) -> Tensor:
        """The stable risk R^e(h_S∘Φ_S): mean cross-entropy of the stable logits."""
        return cross_entropy(self.stable_logits, self.target)

    @property
    def residual(self) -> Tensor:
        """Predicted minus true class probabilities: the gradient of the row's loss in its logits."""
        return self.stable_logits.softmax(1) - self.target


def cut_by_domain(sizes: Sequence[int], *parts: Tensor) -> list[DomainOutput]:
    """Cut the rows of a batch, one domain after the other; parts are in the order of `DomainOutput`.

    Examples
    --------
    >>> import torch
    >>> z = torch.zeros(3, 2)
    >>> [len(domain.target) for domain in cut_by_domain((1, 2), z, z, z)]
    [1, 2]
    """
    return [DomainOutput(*rows) for rows in zip(*(part.split(list(sizes)) for part in parts), strict=True)]


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Return the mean cross-entropy against one-hot (or soft) targets.

    Written out because the library's own takes class indices, which `torch.func.vmap` handles worse.

    Examples
    --------
    >>> import torch
    >>> round(cross_entropy(torch.zeros(1, 4), torch.eye(4)[:1]).item(), 4)
    1.3863
    """
    return -(target * logits.log_softmax(1)).sum(1).mean()


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
    detach_stable : bool
        Keep the joint risk from changing f_S.
    rescale : bool
        Divide the whole loss by λ_S where that is above 1, so that the step size does not depend on it.

    Examples
    --------
    >>> import torch
    >>> from sfboost.torch.objective import IRM, LogitProxy
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
    detach_stable: bool = False
    rescale: bool = False

    def __call__(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> LossParts:
        """Return the loss and its parts."""
        zero = domains[0].stable_logits.new_zeros(())
        stable = joint = penalty = independence = total = zero
        if self.risks != "joint":
            stable = torch.stack([domain.risk for domain in domains]).mean()
            penalty = self.penalty(domains, parameters)
            total = total + stable + self.penalty_weight * penalty
        if self.risks != "stable":
            joint = self._joint_risk(domains)
            independence = self.independence(domains, parameters)
            total = total + joint + self.independence_weight * independence
        if self.rescale and self.risks != "joint":
            total = total / torch.as_tensor(self.penalty_weight).clamp_min(1.0).to(total)
        return LossParts(total, stable, joint, penalty, independence)

    def _joint_risk(self, domains: Sequence[DomainOutput]) -> Tensor:
        risks = [
            cross_entropy(joint_logits(domain, prior, detach_stable=self.detach_stable), domain.target)
            for domain, prior in zip(domains, self.log_prior, strict=True)
        ]
        return torch.stack(risks).mean()
