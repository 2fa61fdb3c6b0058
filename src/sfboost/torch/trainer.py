"""The training loop: stages with a fresh optimiser each, a history, checkpoints, early stopping.

A run is a list of stages (for the paper's tables: empirical risk first, then the penalty). Everything
random inside the network draws from torch's default generator within a forked scope, so the caller's random
state is as before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from sfboost.torch.objective import LossParts
from sfboost.torch.rows import ArraySource, Batch
from sfboost.whole_files import whole_file

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
    state : nn.Module, optional
        More state to save with the network (a penalty with buffers).
    checkpoint : path, optional
        File to save to and to continue from.
    checkpoint_every : int
        Steps between two saves.
    fingerprint : str
        What the run is; a checkpoint of another run is refused.
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
    state: nn.Module | None = None
    checkpoint: Path | None = None
    checkpoint_every: int = 100
    fingerprint: str = ""
    monitor: Callable[[], float] | None = None
    callback: Callable[[dict[str, Any]], object] | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    _best: dict[str, Tensor] = field(default_factory=dict)
    _best_value: float = math.inf
    _waited: int = 0

    def run(self, stages: Sequence[Stage]) -> None:
        """Train through the stages, from the checkpoint on if there is one."""
        devices = list({p.device.index or 0 for p in self.network.parameters() if p.device.type == "cuda"})
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(self.seed)
            position, saved = self._resume()
            for index, stage in enumerate(stages):
                if index < position[0]:
                    continue
                optimizer = torch.optim.Adam(
                    list(stage.parameters), lr=stage.learning_rate, weight_decay=stage.weight_decay
                )
                start = 0
                if saved is not None:
                    restore_optimizer(optimizer, saved)
                    torch.set_rng_state(saved["rng"])
                    start, saved = position[1], None
                self._run_stage(index, stage, optimizer, start)
        self._finish()

    def _run_stage(self, index: int, stage: Stage, optimizer: torch.optim.Optimizer, start: int) -> None:
        if start == 0:
            self._best_value, self._waited = math.inf, 0
            self._best.clear()
        self.network.train()
        for step in range(start, stage.steps):
            for group in optimizer.param_groups:
                group["lr"] = stage.rate(step)
            parts = self._step(stage, optimizer, step)
            self.history.append({"stage": stage.name, "step": step + 1, **parts})
            stop = self._look(step, stage)
            if self.callback is not None:
                self.callback(dict(self.history[-1]))
            done = stop or step + 1 == stage.steps
            if self.checkpoint is not None and (done or (step + 1) % self.checkpoint_every == 0):
                # The end of a stage is saved as the start of the next one.
                self._save((index + 1, 0) if done else (index, step + 1), optimizer, fresh=done)
            if stop:
                break

    def _step(self, stage: Stage, optimizer: torch.optim.Optimizer, step: int) -> dict[str, float]:
        batch = self.source.batch(self.batch_size, self.seed, step)
        optimizer.zero_grad(set_to_none=True)
        losses = stage.loss(batch)
        parts = {name: float(value.detach()) for name, value in losses._asdict().items()}
        _refuse_nan(parts, stage, step, self.checkpoint)
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

    def _save(self, position: tuple[int, int], optimizer: torch.optim.Optimizer, *, fresh: bool) -> None:
        assert self.checkpoint is not None
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self._best.items()}
        if self.state is not None:
            tensors |= {f"state.{name}": value for name, value in self.state.state_dict().items()}
        tensors |= {} if fresh else optimizer_tensors(optimizer)
        tensors["rng"] = torch.get_rng_state()
        meta = {
            "position": position,
            "history": self.history,
            "fingerprint": self.fingerprint,
            "best_value": self._best_value,
            "waited": self._waited,
        }
        save_checkpoint(self.checkpoint, tensors, meta)

    def _resume(self) -> tuple[tuple[int, int], dict[str, Tensor] | None]:
        if self.checkpoint is None or not self.checkpoint.exists():
            return (0, 0), None
        tensors, meta = load_checkpoint(self.checkpoint)
        if meta["fingerprint"] != self.fingerprint:
            raise ValueError(
                f"The checkpoint {self.checkpoint} is of another run (other data or parameters). "
                "Delete it to train from the start, or name another file."
            )
        self.network.load_state_dict(_under("network.", tensors))
        self._best = _under("best.", tensors)
        if self.state is not None:
            self.state.load_state_dict(_under("state.", tensors))
        self.history[:] = meta["history"]
        self._best_value, self._waited = float(meta["best_value"]), int(meta["waited"])
        return (int(meta["position"][0]), int(meta["position"][1])), tensors

    def _finish(self) -> None:
        if self._best:
            self.network.load_state_dict(self._best)
        self.network.eval()


def _refuse_nan(parts: dict[str, float], stage: Stage, step: int, checkpoint: Path | None) -> None:
    bad = [name for name, value in parts.items() if name != "total" and not math.isfinite(value)]
    if not bad and math.isfinite(parts["total"]):
        return
    kept = (
        f"The last good state is in {checkpoint}. " if checkpoint is not None and checkpoint.exists() else ""
    )
    raise TrainingDivergedError(
        f"At step {step + 1} of stage {stage.name!r} the loss is not finite; the part(s) at fault: "
        f"{', '.join(bad) or 'total'}. {kept}Lower the learning rate or the penalty weight, and "
        "look for NaN in X."
    )


# -- training states on disk: tensors and text in one safetensors file ---------------------------------------


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Write a state, of tensors and of what JSON can hold; a reader sees the old file or the new one.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> save_checkpoint(file, {"w": torch.ones(2)}, {"step": 3})
    >>> load_checkpoint(file)
    ({'w': tensor([1., 1.])}, {'step': 3})
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # safetensors refuses tensors that share memory; clones do not.
    whole = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    with whole_file(path) as part:
        save_file(whole, part, metadata={"meta": json.dumps(dict(meta))})


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read back what `save_checkpoint` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            return tensors, json.loads((file.metadata() or {})["meta"])
    except (SafetensorError, KeyError) as error:
        raise ValueError(
            f"{path} is no readable checkpoint ({error}). Delete it to train from the start."
        ) from error


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the moments of an optimiser, named by parameter.

    Examples
    --------
    >>> w = torch.nn.Parameter(torch.ones(1)); w.grad = torch.ones(1)
    >>> adam = torch.optim.Adam([w]); _ = adam.step()
    >>> sorted(optimizer_tensors(adam))
    ['optimizer.0.exp_avg', 'optimizer.0.exp_avg_sq', 'optimizer.0.step']
    """
    state = optimizer.state_dict()["state"]
    return {f"optimizer.{i}.{key}": value for i, values in state.items() for key, value in values.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put saved moments back."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _under("optimizer.", tensors).items():
        index, key = name.split(".")
        state.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
