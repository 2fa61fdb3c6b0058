"""Penalties that the paper's tables compare with, beside those of `sfboost.torch.objective`.

Those that the literature writes as a replacement of the mean risk (EQRM, GroupDRO) return what they add to
it, so that ``mean risk + 1 · penalty`` is the published objective.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from sfboost.registry import unknown
from sfboost.torch.objective import (
    INDEPENDENCE_PENALTIES,
    IRM,
    STABILITY_PENALTIES,
    DomainOutput,
    LogitProxy,
    NoPenalty,
    VREx,
)


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


_BISECTIONS = 60
_SMALLEST_VARIANCE = 1e-24


class EQRM(nn.Module):
    """EQRM: the α-quantile of a Gaussian kernel density of the domain risks, minus their mean.

    Training domains are draws from many: a predictor is good with probability α if the α-quantile of its risk
    is low, between the mean (average case) and the worst.

    ``mean risk + 1 · penalty`` is the EQRM objective. Zero when the risks are equal.

    Parameters
    ----------
    alpha : float, optional
        The quantile, between 0 and 1.
    log_tail : float, optional
        log(1 − α) instead of α, for quantiles that no float can hold (the paper goes to −1000). The
        quantile is then that of the tail, mean + bandwidth · √(−2 log(1 − α)). Exactly one of the two is
        needed.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(2, 2)
    >>> round(EQRM(alpha=0.9)([DomainOutput(zeros, zeros, torch.eye(2))] * 2).item(), 6)
    0.0

    References
    ----------
    .. [1] C. Eastwood, A. Robey, S. Singh et al. (2022). Probable Domain Generalization via Quantile Risk
       Minimization. NeurIPS 35.
    """

    def __init__(self, alpha: float | None = None, *, log_tail: float | None = None) -> None:
        super().__init__()
        if alpha is None and log_tail is None:
            log_tail = -1000.0
        if alpha is not None and log_tail is not None:
            raise ValueError(
                f"EQRM takes alpha or log_tail, got both ({alpha} and {log_tail}). Leave one out."
            )
        if alpha is not None and not 0 < alpha < 1:
            raise ValueError(
                f"EQRM needs alpha between 0 and 1, got {alpha}. For α near 1 pass log_tail=log(1-α)."
            )
        if log_tail is not None and not log_tail < 0:
            raise ValueError(f"log_tail is log(1 - α) and so below 0, got {log_tail}.")
        self.alpha = alpha
        self.log_tail = log_tail

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        risks = torch.stack([domain.risk for domain in domains])
        if len(risks) < 2:
            return risks.new_zeros(())
        # The clamp keeps the square root differentiable where all risks are equal.
        deviation = risks.var(correction=1).clamp_min(_SMALLEST_VARIANCE).sqrt()
        bandwidth = 1.06 * deviation * len(risks) ** -0.2
        if self.log_tail is not None:
            return bandwidth * math.sqrt(-2.0 * self.log_tail)
        assert self.alpha is not None
        return kernel_quantile(risks, bandwidth, self.alpha) - risks.mean()


def kernel_quantile(values: Tensor, bandwidth: Tensor, alpha: float) -> Tensor:
    """Return the α-quantile of a Gaussian kernel density, differentiable in values and bandwidth.

    Found by bisection; one Newton step on the graph then carries the gradient of the implicit function.

    Examples
    --------
    >>> import torch
    >>> kernel_quantile(torch.tensor([1.0, 3.0]), torch.tensor(0.5), 0.5).item()
    2.0
    """
    fixed, width = values.detach(), bandwidth.detach()
    reach = 40.0 * width
    low, high = fixed.min() - reach, fixed.max() + reach
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = torch.special.ndtr((middle - fixed) / width).mean() < alpha
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    middle = (low + high) / 2
    density = torch.exp(-0.5 * ((middle - fixed) / width).square()).mean() / (width * math.sqrt(2 * math.pi))
    distance = torch.special.ndtr((middle - values) / bandwidth).mean() - alpha
    return middle - distance / density


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


class CLOvE(nn.Module):
    """CLOvE: mean over domains of the squared MMCE with a Laplacian kernel.

    A predictor that is calibrated in every domain cannot lean on what differs between them.

    MMCE²_e = n⁻² Σ_ij (c_i − r_i)(c_j − r_j) exp(−|r_i − r_j| / scale), with c the correctness of the
    predicted class (no gradient) and r its confidence. Zero where confidence is accuracy at every
    confidence.

    Parameters
    ----------
    scale : float
        Scale of the kernel.
    max_rows : int
        Rows drawn at random from each domain: the kernel is quadratic in them.

    Examples
    --------
    >>> import torch
    >>> logits = torch.log(torch.tensor([0.25, 0.75])).repeat(4, 1)
    >>> y = torch.eye(2)[[1, 1, 1, 0]]
    >>> abs(round(CLOvE()([DomainOutput(logits, logits, y)]).item(), 6))
    0.0

    References
    ----------
    .. [1] Y. Wald, A. Feder, D. Greenfeld and U. Shalit (2021). On Calibration and Out-of-Domain
       Generalization. NeurIPS 34.
    .. [2] A. Kumar, S. Sarawagi and U. Jain (2018). Trainable Calibration Measures for Neural Networks from
       Kernel Mean Embeddings. ICML.
    """

    def __init__(self, *, scale: float = 0.4, max_rows: int = 1024) -> None:
        super().__init__()
        self.scale = scale
        self.max_rows = max_rows

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        return torch.stack([self._mmce(domain) for domain in domains]).mean()

    def _mmce(self, domain: DomainOutput) -> Tensor:
        logits, target = domain.stable_logits, domain.target
        if len(logits) > self.max_rows:
            rows = torch.randperm(len(logits))[: self.max_rows].to(logits.device)
            logits, target = logits[rows], target[rows]
        confidence, predicted = logits.softmax(1).max(1)
        correct = target.gather(1, predicted[:, None])[:, 0]
        error = correct - confidence
        kernel = torch.exp(-(confidence[:, None] - confidence[None]).abs() / self.scale)
        return error @ kernel @ error / len(error) ** 2


class Fishr(nn.Module):
    """Fishr: mean over domains of ‖v_e − v̄‖², v_e the variance over rows of the gradient in the head.

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


class SpectralDecoupling(nn.Module):
    """Spectral decoupling: the mean squared norm of the logits; zero at logits of zero.

    Features that are learned first make the loss so small that others get no gradient; logits that must stay
    small leave some for them.

    With two classes this is the mean squared log-odds.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[0.0, 2.0]])
    >>> SpectralDecoupling()([DomainOutput(logits, logits, torch.eye(2)[:1])]).item()
    4.0

    References
    ----------
    .. [1] M. Pezeshki, S.-O. Kaba, Y. Bengio et al. (2021). Gradient Starvation: A Learning Proclivity in
       Neural Networks. NeurIPS 34.
    """

    def forward(self, domains: Sequence[DomainOutput], parameters: Sequence[Tensor] = ()) -> Tensor:
        """Return the penalty."""
        return torch.stack([domain.stable_logits.square().sum(1).mean() for domain in domains]).mean()


#: P_Stab by name: the library's and those above.
PENALTIES: dict[str, type[nn.Module]] = {
    **STABILITY_PENALTIES,
    "irm-matrix": IRMMatrix,
    "eqrm": EQRM,
    "groupdro": GroupDRO,
    "clove": CLOvE,
    "fishr": Fishr,
    "iga": IGA,
    "sd": SpectralDecoupling,
}
#: P_CI by name.
INDEPENDENCE: dict[str, type[nn.Module]] = dict(INDEPENDENCE_PENALTIES)
#: Those that many networks may train with at once: they draw nothing at random and keep nothing.
STACKABLE = (IRM, IRMMatrix, VREx, Fishr, SpectralDecoupling, NoPenalty, LogitProxy)


def make(listed: Mapping[str, type[nn.Module]], penalty: str | nn.Module) -> nn.Module:
    """Return the penalty of this name, or the module itself.

    Examples
    --------
    >>> make(PENALTIES, "sd")
    SpectralDecoupling()
    """
    if isinstance(penalty, nn.Module):
        return penalty
    if penalty not in listed:
        raise ValueError(unknown("penalty", penalty, listed))
    return listed[penalty]()
