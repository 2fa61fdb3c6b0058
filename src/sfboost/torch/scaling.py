"""Rows in numbers that a network can learn from: pictures of 0 to 255, columns in thousands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

# Numbers that spread by less or by more than this are not what networks are made for.
_LEAST, _MOST = 0.01, 10.0


@dataclass(frozen=True, eq=False)
class Scaling:
    """(x − shift) · factor: of a table each column by itself, of all else one number, without a shift.

    Parameters
    ----------
    shift, factor : list of float
        One for each column; one in all if rows are no table.

    Examples
    --------
    >>> scaling = Scaling.of(torch.tensor([[2010.0, 0.5], [2030.0, -0.5]]))
    >>> scaling.apply(torch.tensor([[2030.0, 0.5]])).tolist()
    [[1.0, 0.5]]
    >>> Scaling.of(torch.tensor([[1.0, 0.5], [-1.0, -0.5]])) is None
    True
    """

    shift: list[float]
    factor: list[float]

    @classmethod
    def of(cls, x: Tensor) -> Self | None:
        """Find what rows need; None if that is nothing, which most rows need.

        Parameters
        ----------
        x : Tensor of shape (n, ...)
        """
        rows = x.double()
        if x.ndim > 2:  # a picture says something by where it is dark: it is not shifted
            size = float(rows.square().mean().sqrt())
            return None if size == 0.0 or _LEAST <= size <= _MOST else cls([0.0], [1.0 / size])
        mean, spread = rows.mean(0), rows.std(0, correction=0)
        off = mean.abs() > _MOST * spread.clamp(min=1.0)
        far = ((spread > _MOST) | (spread < _LEAST) | off) & (spread > 0.0)
        if not (far | off).any():
            return None
        shift = torch.where(far | off, mean, torch.zeros_like(mean))  # one value throughout is shifted alone
        return cls(shift.tolist(), torch.where(far, 1.0 / spread, torch.ones_like(mean)).tolist())

    def apply(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape and type."""
        shift, factor = (x.new_tensor(values) for values in (self.shift, self.factor))
        return (x - shift) * factor
