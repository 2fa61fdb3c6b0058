"""The networks of several folds trained in step and stopped at one moment.

The rows held out of one fold are few, and those that the guess gets wrong fewer: each fold by itself would
stop where its own rows happen to look best, one after 5 steps and another after 135. Their mean would be
mostly the one that trained longest, and rows held out of the others would say nothing about it. Looked at
together the folds have every row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sfboost.torch.batches import Batch, Source
from sfboost.torch.learning import Learner, few_threads
from sfboost.torch.objective import LossParts
from sfboost.torch.stages import Phase
from sfboost.torch.trainer import Stage, StageRunner


@dataclass(frozen=True, eq=False)
class _Batches:
    """A batch for each learner."""

    parts: Sequence[Batch]

    @property
    def x(self) -> Tensor:
        """Rows of the first: where the numbers are."""
        return self.parts[0].x


@dataclass(frozen=True, eq=False)
class _Sources:
    """Serves every learner its own batch."""

    learners: Sequence[Learner]

    def batch(self, size: int | None, seed: int, step: int) -> _Batches:
        return _Batches([learner.source.batch(size, learner.seed, step) for learner in self.learners])


def train_together(
    learners: Sequence[Learner], phase: Phase, monitor: Callable[[], float], checkpoint: Path | None = None
) -> list[dict[str, Any]]:
    """Train the networks of all learners through one phase; keep the weights of the best common step.

    Adam has a rate for each number, so that nothing of one network reaches another.

    Parameters
    ----------
    learners : sequence of Learner
        With the same plan.
    phase : Phase
    monitor : callable
        Loss on the held-out rows of all.
    checkpoint : path, optional
        File to save to and to continue from.

    Returns
    -------
    list of dict
        The history: means over the learners.
    """
    first = learners[0]
    plan = first.plan
    runner = StageRunner(
        nn.ModuleList(learner.network for learner in learners),
        _as_source(learners),
        batch_size=plan.batch_size,
        seed=first.seed,
        state=nn.ModuleList(learner.penalty for learner in learners),
        checkpoint=checkpoint,
        checkpoint_every=plan.checkpoint_every,
        verbose=plan.verbose,
        monitor=monitor,
        monitor_every=plan.monitor_every,
        patience=plan.patience,
        **first.options,
    )
    with few_threads(first.small()):
        for learner in learners:
            learner.choose_path()
        runner.run([_joined([learner.stage(phase) for learner in learners])])
    return runner.history


def _as_source(learners: Sequence[Learner]) -> Source:
    return _Sources(learners)  # type: ignore[return-value]  # a runner asks for batches alone


def _joined(stages: Sequence[Stage]) -> Stage:
    """All parameters, and the sum of the losses; what the history tells of it is the mean."""
    first = stages[0]

    def loss(batches: Any) -> LossParts:
        every = [stage.loss(batch) for stage, batch in zip(stages, batches.parts, strict=True)]
        means = LossParts(
            *(torch.stack([part.detach() for part in parts]).mean() for parts in zip(*every, strict=True))
        )
        total = torch.stack([parts.total for parts in every]).sum()
        # The value of the mean, the gradient of the sum.
        return means._replace(total=total - total.detach() + means.total)

    return Stage(
        first.name,
        loss,
        [parameter for stage in stages for parameter in stage.parameters],
        first.steps,
        first.learning_rate,
        first.cosine,
        first.weight_decay,
        [parameter for stage in stages for parameter in stage.slow],
        first.slow_rate,
    )
