"""CLOvE (Wald et al., 2021): calibration in every domain, measured by the kernel error MMCE."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfboost.torch.outputs import DomainOutput


class CLOvE(nn.Module):
    """Mean over domains of the squared MMCE with a Laplacian kernel.

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
