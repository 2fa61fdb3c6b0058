"""The training loop: stages with a fresh optimiser each, a history, early stopping.

A run is a list of stages (for the paper's tables: empirical risk first, then the penalty). Everything
random inside the network draws from torch's default generator within a forked scope, so the caller's random
state is as before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from sfboost.torch.objective import LossParts
from sfboost.torch.rows import ArraySource, Batch

Loss = Callable[[Batch], LossParts]
# Steps between two looks at rows that are not trained on; looks without improvement before a stage ends.
_LOOK_EVERY, _PATIENCE = 5, 8


class TrainingDivergedError(FloatingPointError):
    """The loss was not a number; the message names the step and the part."""


@dataclass(frozen=True)
class Stage:
    """One stretch of training.

    Parameters
    ----------
    name : str
        For the history.
    loss : callable
        Maps a batch to `LossParts`.
    parameters : list of nn.Parameter
        What is trained.
    steps : int
        How long.
    learning_rate : float
        Adam's.
    cosine : bool
        Let the rate fall to zero along a cosine.
    weight_decay : float
        Adam's (added to the gradient).
    """

    name: str
    loss: Loss
    parameters: Sequence[nn.Parameter]
    steps: int
    learning_rate: float
    cosine: bool = False
    weight_decay: float = 0.0

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from zero."""
        if not self.cosine:
            return self.learning_rate
        return self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * step / self.steps))


@dataclass
class StageRunner:
    """Runs stages on a network.

    Parameters
    ----------
    network : nn.Module
        Trained in place.
    source : ArraySource
        The rows.
    batch_size : int, optional
        Rows per domain and step; None for all.
    seed : int
        Of the batches and of everything random in the network.
    monitor : callable, optional
        Returns the loss on rows that training does not see; the best weights of the last stage are kept.
    callback : callable, optional
        Called after every step with its line of the history.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from sfboost.torch.rows import ArraySource
    >>> from sfboost.torch.objective import LossParts
    >>> net, zero = torch.nn.Linear(1, 1), torch.zeros(())
    >>> source = ArraySource(torch.ones(4, 1), np.zeros(4, int), np.zeros(4, int), 2, 1)
    >>> def loss(batch):
    ...     value = net(batch.x).square().mean()
    ...     return LossParts(value, value, zero, zero, zero)
    >>> trainer = StageRunner(net, source, seed=0)
    >>> trainer.run([Stage("erm", loss, list(net.parameters()), steps=3, learning_rate=0.1)])
    >>> [row["step"] for row in trainer.history]
    [1, 2, 3]
    """

    network: nn.Module
    source: ArraySource
    batch_size: int | None = None
    seed: int = 0
    monitor: Callable[[], float] | None = None
    callback: Callable[[dict[str, Any]], object] | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    _best: dict[str, Tensor] = field(default_factory=dict)
    _best_value: float = math.inf
    _waited: int = 0

    def run(self, stages: Sequence[Stage]) -> None:
        """Train through the stages."""
        devices = list({p.device.index or 0 for p in self.network.parameters() if p.device.type == "cuda"})
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(self.seed)
            for stage in stages:
                self._run_stage(stage)
        if self._best:
            self.network.load_state_dict(self._best)
        self.network.eval()

    def _run_stage(self, stage: Stage) -> None:
        optimizer = torch.optim.Adam(
            list(stage.parameters), lr=stage.learning_rate, weight_decay=stage.weight_decay
        )
        self._best_value, self._waited = math.inf, 0
        self._best.clear()
        self.network.train()
        for step in range(stage.steps):
            for group in optimizer.param_groups:
                group["lr"] = stage.rate(step)
            parts = self._step(stage, optimizer, step)
            self.history.append({"stage": stage.name, "step": step + 1, **parts})
            stop = self._look(step, stage)
            if self.callback is not None:
                self.callback(dict(self.history[-1]))
            if stop:
                break

    def _step(self, stage: Stage, optimizer: torch.optim.Optimizer, step: int) -> dict[str, float]:
        batch = self.source.batch(self.batch_size, self.seed, step)
        optimizer.zero_grad(set_to_none=True)
        losses = stage.loss(batch)
        parts = {name: float(value.detach()) for name, value in losses._asdict().items()}
        _refuse_nan(parts, stage, step)
        losses.total.backward()
        optimizer.step()
        return parts

    def _look(self, step: int, stage: Stage) -> bool:
        """Evaluate on the rows that stop training, remember the best, say whether to stop."""
        if self.monitor is None or ((step + 1) % _LOOK_EVERY and step + 1 != stage.steps):
            return False
        self.network.eval()
        with torch.no_grad():
            value = self.monitor()
        self.network.train()
        self.history[-1]["validation"] = value
        if value < self._best_value:
            self._best_value, self._waited = value, 0
            self._best = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        else:
            self._waited += 1
        return self._waited >= _PATIENCE


def _refuse_nan(parts: dict[str, float], stage: Stage, step: int) -> None:
    bad = [name for name, value in parts.items() if name != "total" and not math.isfinite(value)]
    if bad or not math.isfinite(parts["total"]):
        raise TrainingDivergedError(
            f"At step {step + 1} of stage {stage.name!r} the loss is not finite; the part(s) at fault: "
            f"{', '.join(bad) or 'total'}. Lower the learning rate or the penalty weight, and look for NaN "
            "in X."
        )
