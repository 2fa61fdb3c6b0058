"""Weights of networks, through safetensors."""

from __future__ import annotations

from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any

from sfboost.persistence.errors import SavedModelError

_DTYPES = ("float32", "float64")


@dataclass(frozen=True, eq=False)
class Tensors:
    """Tensors by name, such as the state of a network."""

    tensors: dict[str, Any]


def tensors_to_bytes(value: Tensors) -> bytes:
    """Bytes by safetensors."""
    from safetensors.torch import save

    # Clones, since safetensors refuses tensors that share memory.
    return bytes(save({k: v.detach().cpu().contiguous().clone() for k, v in value.tensors.items()}))


def tensors_from_bytes(data: bytes) -> Tensors:
    """Tensors by name."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return Tensors(load(data))
    except SafetensorError as error:
        raise SavedModelError(f"its weights cannot be read ({error})") from None


def dtype_name(value: Any, where: str) -> str:
    """Name of a torch number type; any other object of torch is refused."""
    name = str(value).removeprefix("torch.")
    if type(value).__name__ != "dtype" or name not in _DTYPES:
        raise SavedModelError(
            f"{where} is a {type(value).__qualname__}: networks and penalties are saved by name only. Save "
            "the state_dict of your own module with safetensors, and build the model around it again"
        )
    return name


def dtype_of(name: Any) -> Any:
    """The torch number type of a name."""
    if name not in _DTYPES:
        raise SavedModelError(f"it holds numbers of type {shortened(name)}")
    import torch

    return getattr(torch, name)
