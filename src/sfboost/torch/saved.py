"""Trained networks in saved models: weights by safetensors, the architecture by name or from the caller."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import torch
from torch import Tensor, nn

import sfboost.persistence
from sfboost.notices import warn
from sfboost.persistence import SavedModelError, SavedModelWarning
from sfboost.persistence.archive import Tensors
from sfboost.torch.candidates import Candidate, member_network
from sfboost.torch.networks import VIEWS, name_of, views_by_name
from sfboost.torch.split_network import Ensemble, build_network

#: Parameters of `SFBClassifier` that may be modules of the user's.
MODULES = ("network", "penalty", "independence")
_WEIGHTS = ("network_", "backbone_")
# What stands in a file for a module of the user's; its class is never looked up.
_OWN = "module of yours: "
_GIVEN: ContextVar[Mapping[str, Any]] = ContextVar("modules of the user", default={})  # noqa: B039


@contextmanager
def with_modules(**modules: Any) -> Iterator[None]:
    """Give those who load within this the user's modules and views; names are left out."""
    own = {name: value for name, value in modules.items() if not isinstance(value, str | None)}
    token = _GIVEN.set(own)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def load(
    path: str | Path,
    *,
    network: nn.Module | None = None,
    penalty: nn.Module | None = None,
    independence: nn.Module | None = None,
    views: Sequence[Any] | None = None,
    trusted: Collection[Any] = (),
) -> Any:
    """Load a model whose network is a module of one's own, as `sfboost.load` loads all others.

    Parameters
    ----------
    path : path
    network : nn.Module
        Of the class that was trained, with any weights: those of the file take their place in a copy.
    penalty, independence : nn.Module, optional
        Only needed to fit again.
    views : list, optional
        As it was passed, where the chosen view is a function or a module of one's own.
    trusted : list of types or of their full names
        As in `sfboost.load`.
    """
    with with_modules(network=network, penalty=penalty, independence=independence, views=views):
        return sfboost.persistence.load(path, trusted=trusted)


def saved_state(model: Any) -> dict[str, Any]:
    """Attributes of a fitted `SFBClassifier`, its networks as tensors.

    Of a module of the user's its name is kept, and its weights. What was found
    from other attributes is left out, too.
    """
    state = dict(vars(model))
    state.pop("verification_", None)
    for name in MODULES:
        if isinstance(state[name], nn.Module):
            state[name] = f"{_OWN}{type(state[name]).__name__}"
    if state["views"] is not None:
        state["views"] = [name_of(view) for view in state["views"]]
    for name in _WEIGHTS:
        if state[name] is not None:
            state[name] = Tensors(dict(state[name].state_dict()))
    return state


def _take_given(model: Any) -> None:
    """Put the caller's modules where the file names some."""
    for name in MODULES:
        said = getattr(model, name)
        if not isinstance(said, str) or not said.startswith(_OWN):
            continue
        kind, given = said.removeprefix(_OWN), _GIVEN.get().get(name)
        if given is not None:
            setattr(model, name, given)
        elif name == "network":
            raise SavedModelError(
                f"its network is a module of yours, {shortened(kind)}: pass one of that class to "
                "sfboost.torch.load(path, network=...)"
            )
    model.views = _GIVEN.get().get("views", model.views)


def restore_networks(model: Any) -> None:
    """Build the networks of a model whose `network_` and `backbone_` are tensors, and give them these.

    They are built without memory first, so that a file takes no more of it than it brings.
    """
    _take_given(model)
    device, dtype = _use_device(model), model.dtype
    weights = {name: getattr(model, name) for name in _WEIGHTS}
    with torch.device("meta"):
        row = torch.zeros(2, *model.row_shape_, dtype=dtype)
        model.network_ = _searched(model, row) if model.architecture_ else _trained(model, row)
    for name, tensors in weights.items():
        if tensors is not None:
            _fill(getattr(model, name), tensors.tensors, dtype)
            getattr(model, name).to(device)


def _trained(model: Any, row: Tensor) -> nn.Module:
    """The network of a plan, and the frozen one below it if there is one."""
    make_trunk: Callable[[], nn.Module] = model._make_trunk
    if model.plan.freeze_trunk:
        model.backbone_ = make_trunk().to(row.device, row.dtype).eval().requires_grad_(False)
        row, make_trunk = model.backbone_(row), nn.Identity
    return build_network(make_trunk, row, seed=0, **model._split_sizes())


def _searched(model: Any, row: Tensor) -> nn.Module:
    """The networks that a search found."""
    candidate = Candidate(**model.architecture_["candidate"])
    given = [view for view in model.views or () if not isinstance(view, str)]
    views = VIEWS | views_by_name(given, model.row_shape_)
    if candidate.view not in views:
        raise SavedModelError(
            f"its stable part sees rows by a view of yours, {shortened(candidate.view)}: pass the list that "
            "it was fitted with to sfboost.torch.load(path, views=[...])"
        )
    sizes = {"n_classes": len(model.classes_), "n_domains": len(model.domains_), "seed": 0}
    members = [
        member_network(candidate, model.network, views[candidate.view], row, **sizes)
        for _ in range(model.architecture_["members"])
    ]
    return Ensemble(members)


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
    warn(
        f"The model was trained on the device {shortened(model.device)}, which is not here: it is loaded on "
        "the cpu.",
        SavedModelWarning,
    )
    model.device = "cpu"
    return torch.device("cpu")
