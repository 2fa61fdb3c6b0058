"""What a network says about the rows of one domain: the one thing every penalty reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


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
