"""Stability penalties P_Stab of Eq. 5.1: how far a predictor is from being the same in every training domain.

A penalty is an ``nn.Module`` called with the outputs of each training domain and the parameters that the risk
depends on; it returns one number. Those that the literature writes as a replacement of the mean risk (EQRM,
GroupDRO) return what they add to it, so that ``mean risk + 1 · penalty`` is the published objective.

A new penalty is one file here and one line in `STABILITY_PENALTIES`; one of your own needs one line too,
``STABILITY_PENALTIES["mine"] = Mine``. Its class says ``second_order = True`` if it needs the second
derivative of the network.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from sfboost.registry import Registry, unknown
from sfboost.torch.penalties.none import NoPenalty

_HERE = f"{__name__}."

STABILITY_PENALTIES: Registry[Callable[..., nn.Module]] = Registry(
    "stability penalty",
    {
        "irm": _HERE + "irm:IRM",
        "irm-split": _HERE + "irm:IRMSplit",
        "irm-matrix": _HERE + "irm:IRMMatrix",
        "vrex": _HERE + "vrex:VREx",
        "eqrm": _HERE + "eqrm:EQRM",
        "clove": _HERE + "clove:CLOvE",
        "fishr": _HERE + "fishr:Fishr",
        "iga": _HERE + "iga:IGA",
        "sd": _HERE + "sd:SpectralDecoupling",
        "groupdro": _HERE + "groupdro:GroupDRO",
        "none": _HERE + "none:NoPenalty",
    },
)
"""Every stability penalty that can be asked for by name."""


def make_stability_penalty(penalty: str | nn.Module) -> nn.Module:
    """Return the penalty of this name, or the module itself.

    Examples
    --------
    >>> make_stability_penalty("vrex")
    VREx()
    """
    return named_module(STABILITY_PENALTIES, penalty)


def named_module(listed: Registry[Callable[..., nn.Module]], asked: str | nn.Module) -> nn.Module:
    """Return the module of this name, or the module itself."""
    if isinstance(asked, nn.Module):
        return asked
    if asked not in listed:
        raise ValueError(f"{unknown(listed.kind, asked, listed)} Or pass an nn.Module.")
    return listed[asked]()


__all__ = ["STABILITY_PENALTIES", "NoPenalty", "make_stability_penalty", "named_module"]
