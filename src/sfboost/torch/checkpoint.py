"""Training states on disk: tensors and text in one safetensors file, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from sfboost.whole_files import whole_file

_FORMAT = "sfboost-training-1"


def save_checkpoint(path: str | Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Write a state; a reader sees the old file or the new one, never half of it.

    Parameters
    ----------
    path : path
        Where to.
    tensors : mapping of str to Tensor
        Weights, optimiser, random state.
    meta : mapping
        What JSON can hold: position, history, the run's fingerprint.

    Examples
    --------
    >>> import tempfile, pathlib, torch
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> save_checkpoint(file, {"w": torch.ones(2)}, {"step": 3})
    >>> load_checkpoint(file)[1]["step"]
    3
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # safetensors refuses tensors that share memory; clones do not.
    whole = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    with whole_file(path) as part:
        save_file(whole, part, metadata={"format": _FORMAT, "meta": json.dumps(dict(meta))})


def load_checkpoint(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a state back.

    Parameters
    ----------
    path : path
        A file that `save_checkpoint` wrote.

    Returns
    -------
    tensors : dict of str to Tensor
    meta : dict

    Examples
    --------
    >>> import tempfile, pathlib, torch
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> save_checkpoint(file, {"w": torch.ones(2)}, {})
    >>> load_checkpoint(file)[0]["w"].tolist()
    [1.0, 1.0]
    """
    try:
        with safe_open(path, framework="pt") as file:
            text = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except SafetensorError as error:
        raise ValueError(
            f"{path} is no readable checkpoint ({error}). Delete it to train from the start."
        ) from error
    if text.get("format") != _FORMAT:
        raise ValueError(
            f"{path} holds {text.get('format')!r}, a training state of format {_FORMAT!r} is needed. "
            "Choose another checkpoint file."
        )
    return tensors, json.loads(text["meta"])


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the moments of an optimiser, named by parameter.

    Examples
    --------
    >>> import torch
    >>> w = torch.nn.Parameter(torch.ones(1)); w.grad = torch.ones(1)
    >>> adam = torch.optim.Adam([w]); _ = adam.step()
    >>> sorted(optimizer_tensors(adam))
    ['optimizer.0.exp_avg', 'optimizer.0.exp_avg_sq', 'optimizer.0.step']
    """
    state = optimizer.state_dict()["state"]
    return {f"optimizer.{i}.{key}": value for i, values in state.items() for key, value in values.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put saved moments back.

    Examples
    --------
    >>> import torch
    >>> adam = torch.optim.Adam([torch.nn.Parameter(torch.ones(1))])
    >>> restore_optimizer(adam, {"optimizer.0.step": torch.tensor(2.0)})
    >>> adam.state_dict()["state"][0]["step"].item()
    2.0
    """
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".")
            state.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
