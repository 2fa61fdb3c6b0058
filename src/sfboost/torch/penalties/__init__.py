"""Stability penalties P_Stab of Eq. 5.1: how far a predictor is from being the same in every training domain.

A penalty is an ``nn.Module`` called with the outputs of each training domain and the parameters that the risk
depends on; it returns one number. Those that the literature writes as a replacement of the mean risk (EQRM,
GroupDRO) return what they add to it, so that ``mean risk + 1 · penalty`` is the published objective.

A new penalty is one file here and one line in `_LISTED`; one of your own needs one line too,
``STABILITY_PENALTIES["mine"] = Mine``. What else is to be known of it, its class says: ``stackable = True``
if it can be computed for many networks at once (by `torch.func.vmap`: nothing drawn at random, no state),
``second_order = True`` if it needs the second derivative of the network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from torch import nn

from sfboost.torch.penalties.none import NoPenalty

_LISTED = {
    "irm": "irm:IRM",
    "irm-split": "irm:IRMSplit",
    "irm-matrix": "irm:IRMMatrix",
    "vrex": "vrex:VREx",
    "eqrm": "eqrm:EQRM",
    "clove": "clove:CLOvE",
    "fishr": "fishr:Fishr",
    "iga": "iga:IGA",
    "sd": "sd:SpectralDecoupling",
    "groupdro": "groupdro:GroupDRO",
    "none": "none:NoPenalty",
}


def _class(place: str) -> Callable[..., nn.Module]:
    module, _, name = place.partition(":")
    found: Callable[..., nn.Module] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


STABILITY_PENALTIES: dict[str, Callable[..., nn.Module]] = {
    name: _class(place) for name, place in _LISTED.items()
}
"""Every stability penalty that can be asked for by name."""


def make_stability_penalty(penalty: str | nn.Module) -> nn.Module:
    """Return the penalty of this name, or the module itself.

    Examples
    --------
    >>> make_stability_penalty("vrex")
    VREx()
    """
    return named_module("stability penalty", STABILITY_PENALTIES, penalty)


def named_module(
    kind: str, listed: Mapping[str, Callable[..., nn.Module]], asked: str | nn.Module
) -> nn.Module:
    """Return the module of this name, or the module itself."""
    if isinstance(asked, nn.Module):
        return asked
    if asked not in listed:
        raise ValueError(
            f"There is no {kind} named {asked!r}. Known names: {', '.join(listed)}; or pass an nn.Module."
        )
    return listed[asked]()


__all__ = ["STABILITY_PENALTIES", "NoPenalty", "make_stability_penalty", "named_module"]
