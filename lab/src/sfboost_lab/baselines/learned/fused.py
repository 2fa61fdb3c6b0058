"""One autograd node for a whole ReLU network: the fast path of a full-batch step.

On a CPU a wide full batch is bound by memory, not by arithmetic: every out-of-place operation on 50 000 x 390
numbers pays for fresh pages, `nn.Dropout` draws a float per unit, and a row length that is no multiple of a
cache line halves the speed of the matrix product. Here the activations live in buffers that are used again
at each step, rows are padded to whole cache lines, the dropout mask comes from random bytes, and the
backward pass reads the mask off the stored activation (zero means dropped or not active). The arithmetic is
that of ``Linear -> ReLU -> Dropout`` and nothing else. It cannot be differentiated twice nor vectorised by
`torch.func`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sfboost.torch.networks import MLP

_LANE = 16  # float32 numbers in a cache line of 64 bytes
_BYTE = 256
# Numbers in a layer of a step from which it is worth it.
_FUSED_FROM = 2**20


def dropout_threshold(dropout: float) -> int:
    """Bytes below this number mean "drop": the probability in steps of 1/256, never rounded up to everything.

    Examples
    --------
    >>> dropout_threshold(0.2), dropout_threshold(0.0)
    (51, 0)
    """
    return min(round(dropout * _BYTE), _BYTE - 1)


def random_drop(n: int, width: int, threshold: int, workspace: Workspace | None = None) -> Tensor:
    """Draw a boolean mask, true with probability ``threshold / 256``, from torch's current random state.

    Examples
    --------
    >>> random_drop(2, 3, 0).any().item()
    False
    """
    count = n * width // 8 + 1
    if workspace is None:
        words = torch.empty(count, dtype=torch.int64)
        drop = torch.empty(n, width, dtype=torch.bool)
    else:
        words = workspace.take("words", (count,), torch.int64)
        drop = workspace.take("drop", (n, width), torch.bool)
    # The default range of random_ leaves the sign bit at zero: one byte in eight would be biased.
    words.random_(torch.iinfo(torch.int64).min, None)
    torch.lt(words.view(torch.uint8)[: n * width].view(n, width), threshold, out=drop)
    return drop


class Workspace:
    """Buffers of one network that live from step to step."""

    def __init__(self) -> None:
        self._buffers: dict[Any, Tensor] = {}
        self.ticket = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Workspace:
        return Workspace()

    def take(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Return the buffer of this name, made anew (zero-filled) when shape or type changed."""
        buffer = self._buffers.get(name)
        if buffer is None or buffer.shape != shape or buffer.dtype != dtype:
            buffer = torch.zeros(shape, dtype=dtype)
            self._buffers[name] = buffer
        return buffer

    def clear(self) -> None:
        """Give the memory back."""
        self._buffers.clear()


def _padded(width: int) -> int:
    return -(-width // _LANE) * _LANE


def _fill_weight(workspace: Workspace, name: str, weight: Tensor, scale: float) -> Tensor:
    rows, columns = weight.shape
    buffer = workspace.take(name, (_padded(rows), _padded(columns)), weight.dtype)
    torch.mul(weight, scale, out=buffer[:rows, :columns])
    return buffer


class _FusedReluNetwork(torch.autograd.Function):
    """``ReLU(... ReLU(x W1' + b1) ... Wl' + bl)`` with dropout after each ReLU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, workspace: Workspace, threshold: int, *parameters: Tensor) -> Tensor:
        weights, biases = parameters[0::2], parameters[1::2]
        n, scale = len(x), _BYTE / (_BYTE - threshold)
        current = workspace.take("x", (n, _padded(x.shape[1])), x.dtype)
        current[:, : x.shape[1]].copy_(x)
        for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            # Inverted dropout scales what is kept; the scale rides on the next layer's weights.
            w = _fill_weight(workspace, f"w{layer}", weight, scale if layer else 1.0)
            b = workspace.take(f"b{layer}", (len(w),), bias.dtype)
            b[: len(bias)].copy_(bias)
            h = workspace.take(f"h{layer}", (n, len(w)), x.dtype)
            torch.addmm(b, current, w.T, out=h)
            h.relu_()
            if threshold:
                h.masked_fill_(random_drop(n, len(w), threshold, workspace), 0.0)
            current = h
        workspace.ticket += 1
        ctx.workspace, ctx.ticket, ctx.scale = workspace, workspace.ticket, scale
        ctx.shapes = [weight.shape for weight in weights]
        return current[:, : len(weights[-1])] * scale

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        workspace: Workspace = ctx.workspace
        if workspace.ticket != ctx.ticket:
            raise RuntimeError(
                "The buffers of this network were overwritten by a later forward pass before "
                "backward was called. "
                "Call backward after each forward, or build the network as an MLP."
            )
        grads: list[Tensor] = []
        depth, scale = len(ctx.shapes), ctx.scale
        g: Tensor | None = None
        for layer in reversed(range(depth)):
            h = workspace.take(f"h{layer}", tuple(workspace._buffers[f"h{layer}"].shape), gradient.dtype)
            if g is None:
                g = workspace.take(f"g{layer % 2}", tuple(h.shape), gradient.dtype)
                torch.mul(gradient, scale, out=g[:, : gradient.shape[1]])
            # A stored zero is a unit that was dropped or not active: no gradient passes.
            torch.ops.aten.threshold_backward.grad_input(g, h, 0, grad_input=g)
            rows, columns = ctx.shapes[layer]
            below = workspace._buffers[f"h{layer - 1}" if layer else "x"]
            weight_gradient = torch.mm(g.T, below)[:rows, :columns]
            grads.append(g.sum(0)[:rows])
            grads.append(weight_gradient * scale if layer else weight_gradient.contiguous())
            if layer:
                w = workspace._buffers[f"w{layer}"]
                lower = workspace.take(f"g{(layer - 1) % 2}", (len(g), w.shape[1]), gradient.dtype)
                torch.mm(g, w, out=lower)
                g = lower
        return (None, None, None, *reversed(grads))


def fused_relu_network(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], dropout: float, workspace: Workspace
) -> Tensor:
    """Run a ReLU network as one node; gradients flow to weights and biases, not to ``x``.

    Parameters
    ----------
    x : Tensor of shape (n, d)
        The inputs, on the CPU.
    weights, biases : sequences of Tensor
        One pair per layer, shaped as in `torch.nn.Linear`.
    dropout : float
        Share of units dropped after each layer (in steps of 1/256).
    workspace : Workspace
        The buffers; one per network.

    Returns
    -------
    Tensor of shape (n, width of the last layer)

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.Linear(3, 4)
    >>> x = torch.ones(5, 3)
    >>> out = fused_relu_network(x, [layer.weight], [layer.bias], 0.0, Workspace())
    >>> torch.allclose(out, layer(x).relu(), atol=1e-6)
    True
    """
    pairs = [t for pair in zip(weights, biases, strict=True) for t in pair]
    output: Tensor = _FusedReluNetwork.apply(x, workspace, dropout_threshold(dropout), *pairs)
    return output


class FusedMLP(MLP):
    """An `MLP` that takes this path in training steps with many rows; `fused` is off unless asked for."""

    fused = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._workspace = Workspace()

    def forward(self, x: Tensor) -> Tensor:
        """Return the last hidden layer."""
        if not (self.fused and self.training and torch.is_grad_enabled()):
            return super().forward(x)
        layers = [layer for layer in self.layers if isinstance(layer, nn.Linear)]
        weights, biases = [layer.weight for layer in layers], [layer.bias for layer in layers]
        return fused_relu_network(x.flatten(1), weights, biases, self.dropout.p, self._workspace)


def choose_path(network: nn.Module, rows_per_step: int, *, second_order: bool) -> None:
    """Take the fast path where a step has many rows, unless a penalty is differentiated twice."""
    for module in network.modules():
        if isinstance(module, FusedMLP):
            module.fused = not second_order and rows_per_step * module.n_features >= _FUSED_FROM


def free_buffers(network: nn.Module) -> None:
    """Give back the memory of the fast path."""
    for module in network.modules():
        if isinstance(module, FusedMLP):
            module._workspace.clear()
