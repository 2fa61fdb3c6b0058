"""Trained networks in saved models: weights by safetensors, the architecture by name."""

from __future__ import annotations

import warnings
from contextlib import suppress
from reprlib import repr as shortened
from typing import Any

import torch
from torch import nn

from sfboost.persistence import SavedModelError, SavedModelWarning
from sfboost.persistence.tensors import Tensors
from sfboost.torch.building import build_network

_WEIGHTS = ("network_", "backbone_")


def saved_state(model: Any) -> dict[str, Any]:
    """Attributes of a fitted `SFBClassifier`, its networks as tensors.

    The folder of checkpoints is left out: it belongs to the machine that trained, and a file must not say
    where another one writes.
    """
    for name in ("network", "penalty", "independence"):
        if isinstance(getattr(model, name), nn.Module):
            raise SavedModelError(
                f"{name} is an object of type {type(getattr(model, name)).__name__}, and networks and "
                "penalties are saved by name only: pass a name, or save the state_dict of your module with "
                "safetensors"
            )
    state = dict(vars(model)) | {"plan": model.plan.changed(checkpoint=None)}
    for name in _WEIGHTS:
        if state[name] is not None:
            state[name] = Tensors(dict(state[name].state_dict()))
    return state


def restore_networks(model: Any) -> None:
    """Build the networks of a model whose `network_` and `backbone_` are tensors, and give them these.

    They are built without memory first, so that a file takes no more of it than it brings.
    """
    if model.plan.checkpoint is not None:
        raise SavedModelError("it names a folder for checkpoints, which no saved model does")
    device, dtype = _use_device(model), model.precision_.dtype
    weights = {name: getattr(model, name) for name in _WEIGHTS}
    make_trunk = model._trunk_maker(model.row_shape_)
    with torch.device("meta"):
        row = torch.zeros(2, *model.row_shape_, dtype=dtype)
        if model.plan.freeze_trunk:
            model.backbone_ = make_trunk().to(dtype).eval().requires_grad_(False)
            row, make_trunk = model.backbone_(row), nn.Identity
        model.network_ = build_network(make_trunk, row, seed=0, **model._split_sizes())
    for name, tensors in weights.items():
        if tensors is not None:
            _fill(getattr(model, name), tensors.tensors, dtype)
            getattr(model, name).to(device)


def _fill(network: nn.Module, tensors: dict[str, Any], dtype: torch.dtype) -> None:
    """Weights of the right names, shapes and types, and no others."""
    wanted = network.state_dict()
    if any(tensors[name].dtype != value.dtype for name, value in wanted.items() if name in tensors):
        raise SavedModelError(f"its weights are not of type {dtype}")
    network.load_state_dict(tensors, strict=True, assign=True)


def _use_device(model: Any) -> torch.device:
    """The model's device, or the processor where that is not here."""
    with suppress(RuntimeError, AssertionError):
        device = torch.empty(0, device=model.device).device
        if device.type != "meta":
            return device
    warnings.warn(
        f"The model was trained on the device {shortened(model.device)}, which is not here: it is loaded on "
        "the cpu.",
        SavedModelWarning,
        stacklevel=2,
    )
    model.device = "cpu"
    return torch.device("cpu")
