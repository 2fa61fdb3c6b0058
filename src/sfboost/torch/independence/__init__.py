"""Independence penalties P_CI of Eq. 5.1: how far Φ_S and Φ_U are from independent given the label.

A new penalty is one file here and one line in `INDEPENDENCE_PENALTIES`.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from sfboost.registry import Registry
from sfboost.torch.penalties import named_module

_HERE = f"{__name__}."

INDEPENDENCE_PENALTIES: Registry[Callable[..., nn.Module]] = Registry(
    "independence penalty",
    {
        "proxy": _HERE + "proxy:LogitProxy",
        "proxy-features": _HERE + "proxy:FeatureProxy",
        "hsic": _HERE + "hsic:ConditionalHSIC",
        "none": "sfboost.torch.penalties.none:NoPenalty",
    },
)
"""Every independence penalty that can be asked for by name."""


def make_independence_penalty(penalty: str | nn.Module) -> nn.Module:
    """Return the penalty of this name, or the module itself.

    Examples
    --------
    >>> make_independence_penalty("proxy")
    LogitProxy()
    """
    return named_module(INDEPENDENCE_PENALTIES, penalty)


__all__ = ["INDEPENDENCE_PENALTIES", "make_independence_penalty"]
