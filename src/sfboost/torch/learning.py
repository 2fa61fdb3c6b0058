"""One network through the course of training: its losses, history, checkpoints."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sfboost.notices import warn
from sfboost.torch.batches import ArraySource, Batch, Source
from sfboost.torch.building import final_risk
from sfboost.torch.course import Course
from sfboost.torch.networks import MLP
from sfboost.torch.objective import LossParts
from sfboost.torch.outputs import DomainOutput, cut_by_domain
from sfboost.torch.penalties import make_independence_penalty, make_stability_penalty
from sfboost.torch.plan import Goal, Plan
from sfboost.torch.split_network import SplitNetwork
from sfboost.torch.stages import Phase, Trial, trials
from sfboost.torch.trainer import Loss, Stage, StageRunner

_CHUNK = 8192
_FUSED_FROM = 2**20
_ONE_THREAD_BELOW = 2**17


@contextlib.contextmanager
def few_threads(small: bool) -> Iterator[None]:
    """Run small work on one thread: threads that wait for each other cost more than they give.

    Examples
    --------
    >>> with few_threads(True):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    if small:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Learner(Course):
    """Trains a `SplitNetwork` by a plan and keeps the history.

    Parameters
    ----------
    network : SplitNetwork
        Trained in place.
    source : Source
        The labelled rows.
    goal : Goal
        What is learned.
    plan : Plan
        How.
    seed : int
        Of batches, dropout and restarts.
    trainer_options : dict
        Passed on to `StageRunner`: fingerprint, autocast, callback.
    monitor : callable, optional
        Loss on the early-stopping domain.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from sfboost.torch.building import build_network
    >>> x, y, d = torch.randn(8, 2), np.arange(8) % 2, np.arange(8) // 4
    >>> net = build_network(lambda: torch.nn.Linear(2, 4), x, split="shared", n_classes=2, n_domains=2,
    ...                     n_stable=None, n_unstable=None, seed=0)
    >>> learner = Learner(net, ArraySource(x, y, d, 2, 2), Goal(split="shared"), Plan(steps=2), seed=0)
    >>> learner.learn()
    >>> len(learner.history)
    2
    """

    def __init__(
        self,
        network: SplitNetwork,
        source: Source,
        goal: Goal,
        plan: Plan,
        *,
        seed: int,
        monitor: Callable[[], float] | None = None,
        trainer_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__([network], [source], [seed], plan)
        self.network = network
        self.source = source
        self.goal = goal
        self.seed = seed
        self.monitor = monitor
        self.options = trainer_options or {}
        self.history: list[dict[str, Any]] = []
        # A copy: a penalty with buffers must not remember a former fit.
        self.penalty = copy.deepcopy(make_stability_penalty(goal.penalty)).train()
        self.independence = copy.deepcopy(make_independence_penalty(goal.independence)).train()

    def learn(self, course: Sequence[Trial] | None = None) -> None:
        """Run every stage of the plan, or those that are given."""
        with few_threads(self._small()):
            self._choose_path()
            self.follow(trials(self.goal, self.plan) if course is None else course)

    @property
    def restarts(self) -> int:
        """How often the unstable part was started again."""
        return int(self.restarts_of[0])

    def _small(self) -> bool:
        return self._rows_per_step() * self.network.n_stable < _ONE_THREAD_BELOW

    def _rows_per_step(self) -> int:
        sizes = self.source.sizes
        return sum(sizes) if self.plan.batch_size is None else self.plan.batch_size * len(sizes)

    def _choose_path(self) -> None:
        rows = self._rows_per_step()
        plain = self.options.get("autocast", False) or getattr(self.penalty, "second_order", False)
        for module in self.network.modules():
            if isinstance(module, MLP):
                module.fused = not plain and rows * module.n_features >= _FUSED_FROM

    def attempt(self, trial: Trial, number: int, members: Sequence[int]) -> list[float]:
        """Train through the phases; the file of a checkpoint is named by the trial and its attempt."""
        trainer = StageRunner(
            self.network,
            self.source,
            batch_size=self.plan.batch_size,
            seed=self.seed,
            state=self.penalty,
            checkpoint=self._file(f"{trial.name}-{number}" if trial.lowers else trial.name),
            checkpoint_every=self.plan.checkpoint_every,
            verbose=self.plan.lines,
            monitor=self.monitor if trial.watched else None,
            monitor_every=self.plan.monitor_every,
            patience=self.plan.patience,
            **self.options,
        )
        trainer.run([self._stage(phase) for phase in trial.phases])
        self.history.extend(trainer.history)
        return [final_risk([row[trial.lowers or "total"] for row in trainer.history])]

    def _file(self, name: str) -> Path | None:
        folder = self.plan.checkpoint
        return None if folder is None else Path(folder) / f"{name}.safetensors"

    def _stage(self, phase: Phase) -> Stage:
        parameters = {
            "all": lambda: [p for p in self.network.parameters() if p.requires_grad],
            "stable": self.network.stable_parameters,
            "unstable": self.network.unstable_parameters,
        }[phase.trained]()
        slow, rate = [], self.plan.trunk_learning_rate
        if rate is not None:
            trunks = [
                trunk for trunk in (self.network.trunk, self.network.unstable_trunk) if trunk is not None
            ]
            inside = {id(parameter) for trunk in trunks for parameter in trunk.parameters()}
            slow = [parameter for parameter in parameters if id(parameter) in inside]
        return Stage(
            phase.name,
            self._loss(phase),
            parameters,
            phase.steps,
            phase.learning_rate,
            phase.cosine,
            phase.weight_decay,
            slow,
            rate or 0.0,
        )

    def _loss(self, phase: Phase) -> Loss:
        """Return the loss of a batch; it runs no more of the network than the phase needs."""
        log_prior = self.source.log_prior().to(next(self.network.parameters()))
        objective = phase.objective(
            self.plan, log_prior, phase.weights(self.goal), self.penalty, self.independence
        )
        parameters = self.network.stable_parameters() if phase.risks in ("both", "stable") else []
        outputs = self._outputs(phase.risks)

        def loss(batch: Batch) -> LossParts:
            sizes, target = list(batch.sizes), batch.target
            found = {name: part.to(target.dtype).split(sizes) for name, part in outputs(batch).items()}
            domains = [
                DomainOutput(target=rows, **{name: parts[e] for name, parts in found.items()})
                for e, rows in enumerate(target.split(sizes))
            ]
            return objective(domains, parameters)

        return loss

    def _outputs(self, risks: str) -> Callable[[Batch], dict[str, Tensor]]:
        """Return what the network says of a batch, as fields of `DomainOutput`."""
        network = self.network
        frozen = self._frozen_stable() if risks == "joint" else None

        def outputs(batch: Batch) -> dict[str, Tensor]:
            if risks == "both":
                return dict(network(batch.x, batch.sizes)._asdict())
            if risks == "stable":
                stable = network.stable_features(batch.x)
                return {"stable_features": stable, "stable_logits": network.stable_logits(stable)}
            unstable = network.unstable_features(batch.x)
            logits = network.unstable_logits(unstable, batch.sizes)
            if frozen is None:  # the guess of Φ_U alone stands where f_S will
                return {"stable_features": logits, "stable_logits": logits}
            stable, stable_logits = frozen(batch)
            return {
                "stable_features": stable,
                "stable_logits": stable_logits,
                "unstable_features": unstable,
                "unstable_logits": logits,
            }

        return outputs

    def _frozen_stable(self) -> Callable[[Batch], tuple[Tensor, Tensor]]:
        """f_S does not change any more: for rows in memory it is computed once."""

        def compute(x: Tensor) -> tuple[Tensor, Tensor]:
            self.network.trunk.eval()
            with torch.no_grad():
                features = torch.cat([self.network.stable_features(part) for part in x.split(_CHUNK)])
                return features, self.network.stable_logits(features)

        if not isinstance(self.source, ArraySource):
            return lambda batch: compute(batch.x)
        features, logits = compute(self.source.x)
        return lambda batch: (
            (features, logits) if batch.rows is None else (features[batch.rows], logits[batch.rows])
        )

    def give_up(self, trial: Trial, baseline: float, best: float) -> None:
        """Say that there is little in these features."""
        warn(
            f"In {self.plan.max_restarts + 1} starts the {trial.name} part never lowered the risk by "
            f"{100 * self.plan.min_gain:g} % ({baseline:.4g} without it, {best:.4g} with it): there is "
            "little in these features. Train longer or wider, or lower the penalty, if there should "
            "be more.",
            UserWarning,
        )

    def stable_risks(self) -> list[float]:
        """Return the risk of f_S, in batches the mean of eight."""
        self.network.eval()
        values = []
        with torch.no_grad():
            frozen = self._frozen_stable()
            for step in range(1 if self.plan.batch_size is None else 8):
                batch = self.source.batch(self.plan.batch_size, self.seed, step)
                features, logits = frozen(batch)
                domains = cut_by_domain(batch.sizes, features, logits, batch.target)
                risks = [domain.risk for domain in domains]
                values.append(float(torch.stack(risks).mean()))
        return [float(np.mean(values))]
