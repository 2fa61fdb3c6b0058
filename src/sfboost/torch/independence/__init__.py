"""Independence penalties P_CI of Eq. 5.1: how far Φ_S and Φ_U are from independent given the label.

A new penalty is one file here and one line in `INDEPENDENCE_PENALTIES`.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from sfboost.torch.independence.hsic import ConditionalHSIC
from sfboost.torch.independence.proxy import FeatureProxy, LogitProxy
from sfboost.torch.penalties import NoPenalty, named_module

INDEPENDENCE_PENALTIES: dict[str, Callable[..., nn.Module]] = {
    "proxy": LogitProxy,
    "proxy-features": FeatureProxy,
    "hsic": ConditionalHSIC,
    "none": NoPenalty,
}
"""Every independence penalty that can be asked for by name."""


def make_independence_penalty(penalty: str | nn.Module) -> nn.Module:
    """Return the penalty of this name, or the module itself.

    Examples
    --------
    >>> make_independence_penalty("proxy")
    LogitProxy()
    """
    return named_module("independence penalty", INDEPENDENCE_PENALTIES, penalty)


__all__ = [
    "INDEPENDENCE_PENALTIES",
    "ConditionalHSIC",
    "FeatureProxy",
    "LogitProxy",
    "NoPenalty",
    "make_independence_penalty",
]
