"""Stability penalties P_Stab of Eq. 5.1: how far a predictor is from being the same in every training domain.

A penalty is an ``nn.Module`` called with the outputs of each training domain and the parameters that the risk
depends on; it returns one number. Those that the literature writes as a replacement of the mean risk (EQRM,
GroupDRO) return what they add to it, so that ``mean risk + 1 · penalty`` is the published objective.
A new penalty is one file here and one line in `STABILITY_PENALTIES`.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from sfboost.torch.penalties.clove import CLOvE
from sfboost.torch.penalties.eqrm import EQRM
from sfboost.torch.penalties.fishr import Fishr
from sfboost.torch.penalties.groupdro import GroupDRO
from sfboost.torch.penalties.iga import IGA
from sfboost.torch.penalties.irm import IRM, IRMMatrix, IRMSplit
from sfboost.torch.penalties.none import NoPenalty
from sfboost.torch.penalties.sd import SpectralDecoupling
from sfboost.torch.penalties.vrex import VREx

STABILITY_PENALTIES: dict[str, Callable[..., nn.Module]] = {
    "irm": IRM,
    "irm-split": IRMSplit,
    "irm-matrix": IRMMatrix,
    "vrex": VREx,
    "eqrm": EQRM,
    "clove": CLOvE,
    "fishr": Fishr,
    "iga": IGA,
    "sd": SpectralDecoupling,
    "groupdro": GroupDRO,
    "none": NoPenalty,
}
"""Every stability penalty that can be asked for by name."""


def make_stability_penalty(penalty: str | nn.Module) -> nn.Module:
    """Return the penalty of this name, or the module itself.

    Examples
    --------
    >>> make_stability_penalty("vrex")
    VREx()
    """
    if isinstance(penalty, nn.Module):
        return penalty
    if penalty not in STABILITY_PENALTIES:
        raise ValueError(
            f"There is no stability penalty named {penalty!r}. Known names: "
            f"{', '.join(STABILITY_PENALTIES)}; "
            "or pass an nn.Module."
        )
    return STABILITY_PENALTIES[penalty]()


__all__ = [
    "EQRM",
    "IGA",
    "IRM",
    "STABILITY_PENALTIES",
    "CLOvE",
    "Fishr",
    "GroupDRO",
    "IRMMatrix",
    "IRMSplit",
    "NoPenalty",
    "SpectralDecoupling",
    "VREx",
    "make_stability_penalty",
]
