"""Which number type to train in: bfloat16 only where the processor is fast at it."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass

import torch

_SIZE = 256
_FASTER = 1.5
_TIMES = 50


@dataclass(frozen=True)
class Precision:
    """What was chosen, and why.

    Attributes
    ----------
    dtype : torch.dtype
        Type of the weights: float32 or float64.
    autocast : bool
        Whether matrix products run in bfloat16.
    reason : str
        A sentence for the record.
    """

    dtype: torch.dtype
    autocast: bool
    reason: str

    @property
    def name(self) -> str:
        """``"bfloat16"``, ``"float32"`` or ``"float64"``."""
        return "bfloat16" if self.autocast else str(self.dtype).removeprefix("torch.")


@functools.cache
def bfloat16_speedup(device: str) -> float:
    """Return how many times faster than float32 a small bfloat16 product is here; measured once.

    Examples
    --------
    >>> bfloat16_speedup("cpu") > 0
    True
    """
    squares = [
        torch.ones(_SIZE, _SIZE, dtype=dtype, device=device) for dtype in (torch.float32, torch.bfloat16)
    ]
    seconds = [float("inf")] * 2
    # In turn, and many times: what else the machine does must not decide, or the same fit would not repeat.
    for _ in range(_TIMES):
        for k, square in enumerate(squares):
            start = time.perf_counter()
            (square @ square).sum().item()
            seconds[k] = min(seconds[k], time.perf_counter() - start)
    return seconds[0] / seconds[1]


def resolve_precision(precision: str, device: torch.device) -> Precision:
    """Turn ``"auto"``, ``"bfloat16"``, ``"float32"`` or ``"float64"`` into a decision.

    Examples
    --------
    >>> import torch
    >>> resolve_precision("float64", torch.device("cpu")).name
    'float64'
    """
    if precision == "auto":
        speedup = bfloat16_speedup(str(device))
        chosen = speedup >= _FASTER
        reason = (
            f"auto: a bfloat16 product runs at {speedup:.2g} times the speed of float32 on this {device.type}"
        )
        return Precision(torch.float32, chosen, reason)
    if precision not in {"bfloat16", "float32", "float64"}:
        raise ValueError(f"precision must be 'auto', 'bfloat16', 'float32' or 'float64', got {precision!r}.")
    dtype = torch.float64 if precision == "float64" else torch.float32
    return Precision(dtype, precision == "bfloat16", "as asked for")
