"""From a plan to trained features: the paper's shared split, and stable net first, unstable net second.

The paper splits the output of one network (``split="shared"``) and notes that Φ_S and Φ_U could be learned
apart. ``split="separate"`` does that: f_S by risk and stability penalty alone; then, with f_S frozen, a
narrow Φ_U that is trained briefly on the joint risk. ``split="alternating"`` minimises Eq. 5.1 in turns: the
same two stages, Φ_U without the independence penalty, and then f_S again under all penalties with Φ_U frozen,
so that it is f_S that becomes independent. Some networks start dead and never lower their risk, so each stage
is checked and started again (`docs/decisions` has the measurements behind this).
"""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sfboost.torch.batches import ArraySource, Batch, Source
from sfboost.torch.building import (
    chance_risk,
    final_risk,
    guess_classes,
    reset_stable,
    reset_unstable,
    restart_seed,
)
from sfboost.torch.independence import make_independence_penalty
from sfboost.torch.networks import MLP
from sfboost.torch.objective import LossParts, Objective
from sfboost.torch.outputs import DomainOutput
from sfboost.torch.penalties import NoPenalty, make_stability_penalty
from sfboost.torch.plan import Goal, Plan
from sfboost.torch.split_network import Outputs, SplitNetwork, by_domain
from sfboost.torch.trainer import Loss, Stage, Trainer

_CHUNK = 8192
_FUSED_FROM = 2**20
_ONE_THREAD_BELOW = 2**17


def independence_weight(goal: Goal, risks: str) -> float:
    """Return λ_C of a stage: with "alternating" it is f_S that becomes independent, Φ_U is free of it.

    Examples
    --------
    >>> independence_weight(Goal(), "joint"), independence_weight(Goal(split="alternating"), "joint")
    (1.0, 0.0)
    """
    return 0.0 if goal.split == "alternating" and risks == "joint" else goal.independence_weight


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


class Learner:
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
        Passed on to `Trainer`: fingerprint, verbose, autocast.
    checkpoint : path, optional
        Folder for checkpoints.
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
        checkpoint: Path | None = None,
        monitor: Callable[[], float] | None = None,
        trainer_options: dict[str, Any] | None = None,
    ) -> None:
        self.network = network
        self.source = source
        self.goal = goal
        self.plan = plan
        self.seed = seed
        self.checkpoint = checkpoint
        self.monitor = monitor
        self.options = trainer_options or {}
        self.history: list[dict[str, Any]] = []
        self.restarts = 0
        # A copy: a penalty with buffers must not remember a former fit.
        self.penalty = copy.deepcopy(make_stability_penalty(goal.penalty)).train()
        self.independence = copy.deepcopy(make_independence_penalty(goal.independence)).train()

    def learn(self) -> None:
        """Run every stage of the plan."""
        with few_threads(self._small()):
            self._learn()

    def learn_unstable(self) -> None:
        """Train Φ_U alone, beside an f_S that is trained already."""
        with few_threads(self._small()):
            self._choose_path()
            self._learn_unstable()

    def _small(self) -> bool:
        return self._rows_per_step() * self.network.n_stable < _ONE_THREAD_BELOW

    def _rows_per_step(self) -> int:
        sizes = self.source.sizes
        return sum(sizes) if self.plan.batch_size is None else self.plan.batch_size * len(sizes)

    def _learn(self) -> None:
        self._choose_path()
        if self.goal.split == "shared":
            self._train("shared", self._shared_stages())
            return
        if self.plan.balance and self.plan.unstable_steps:
            self._balance()
        self._restarted("stable", self._stable_stages, reset_stable, "stable", chance_risk(self.source))
        self.source.balance(None)
        if self.plan.unstable_steps:
            self._learn_unstable()
        if self.goal.split == "alternating":
            self._train("again", [self._again_stage()])

    def _choose_path(self) -> None:
        rows = self._rows_per_step()
        plain = self.options.get("autocast", False) or getattr(self.penalty, "second_order", False)
        for module in self.network.modules():
            if isinstance(module, MLP):
                module.fused = not plain and rows * module.n_features >= _FUSED_FROM

    def _objective(self, risks: str, *, penalties: bool, detach_stable: bool = False) -> Objective:
        parameter = next(self.network.parameters())
        return Objective(
            log_prior=self.source.log_prior().to(parameter),
            penalty=self.penalty if penalties else NoPenalty(),
            independence=self.independence if penalties else NoPenalty(),
            penalty_weight=self.goal.penalty_weight if penalties else 1.0,
            independence_weight=independence_weight(self.goal, risks) if penalties else 0.0,
            risks=risks,
            gamma=self.plan.gamma if risks == "both" else None,
            detach_stable=self.plan.detach_stable or detach_stable,
            rescale=self.plan.rescale,
        )

    def _shared_stages(self) -> list[Stage]:
        parameters = [p for p in self.network.parameters() if p.requires_grad]
        return self._two_stages("joint", parameters, self._shared_loss)

    def _stable_stages(self) -> list[Stage]:
        return self._two_stages("stable", self.network.stable_parameters(), self._stable_loss)

    def _two_stages(
        self, name: str, parameters: list[nn.Parameter], loss: Callable[[bool], Loss]
    ) -> list[Stage]:
        plan = self.plan
        stages = []
        if plan.pretrain_steps:
            stages.append(
                Stage(
                    "pretrain",
                    loss(False),
                    parameters,
                    plan.pretrain_steps,
                    plan.learning_rate,
                    weight_decay=plan.weight_decay,
                )
            )
        stages.append(
            Stage(
                name, loss(True), parameters, plan.steps, plan.learning_rate, plan.cosine, plan.weight_decay
            )
        )
        return stages

    def _again_stage(self) -> Stage:
        plan, loss = self.plan, self._shared_loss(True, detach_stable=True)
        parameters = self.network.stable_parameters()
        return Stage(
            "again", loss, parameters, plan.steps, plan.learning_rate, plan.cosine, plan.weight_decay
        )

    def _shared_loss(self, penalties: bool, *, detach_stable: bool = False) -> Loss:
        objective = self._objective("both", penalties=penalties, detach_stable=detach_stable)
        stable_parameters = self.network.stable_parameters()

        def loss(batch: Batch) -> LossParts:
            outputs = self.network(batch.x, batch.sizes)
            outputs = Outputs(*(part.to(batch.target.dtype) for part in outputs))
            return objective(by_domain(outputs, batch.target, batch.sizes), stable_parameters)

        return loss

    def _balance(self) -> None:
        """Train Φ_U briefly by empirical risk; its guess Û then balances the rows for the stable stage."""
        plan, start = self.plan, self._state()

        def stages() -> list[Stage]:
            parameters = self.network.unstable_parameters()
            return [
                Stage(
                    "guess",
                    self._guess_loss(),
                    parameters,
                    plan.unstable_steps,
                    plan.unstable_rate,
                    weight_decay=plan.weight_decay,
                )
            ]

        self._restarted("guess", stages, reset_unstable, "stable", chance_risk(self.source))
        self.source.balance(guess_classes(self.network, self.source))
        self.network.load_state_dict(start)

    def _guess_loss(self) -> Loss:
        objective = self._objective("stable", penalties=False)

        def loss(batch: Batch) -> LossParts:
            logits = self.network.unstable_logits(self.network.unstable_features(batch.x), batch.sizes)
            rows = zip(*(t.split(list(batch.sizes)) for t in (logits, batch.target)), strict=True)
            return objective([DomainOutput(z.to(y.dtype), z.to(y.dtype), y) for z, y in rows])

        return loss

    def _stable_loss(self, penalties: bool) -> Loss:
        objective = self._objective("stable", penalties=penalties)
        parameters = self.network.stable_parameters()

        def loss(batch: Batch) -> LossParts:
            features = self.network.stable_features(batch.x)
            logits = self.network.stable_logits(features)
            rows = zip(*(t.split(list(batch.sizes)) for t in (features, logits, batch.target)), strict=True)
            domains = [DomainOutput(f.to(y.dtype), z.to(y.dtype), y) for f, z, y in rows]
            return objective(domains, parameters)

        return loss

    def _unstable_loss(self) -> Loss:
        objective = self._objective("joint", penalties=True)
        frozen = self._frozen_stable()

        def loss(batch: Batch) -> LossParts:
            stable, stable_logits = frozen(batch)
            unstable = self.network.unstable_features(batch.x)
            unstable_logits = self.network.unstable_logits(unstable, batch.sizes)
            outputs = Outputs(stable, unstable, stable_logits, unstable_logits)
            outputs = Outputs(*(part.to(batch.target.dtype) for part in outputs))
            return objective(by_domain(outputs, batch.target, batch.sizes), ())

        return loss

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

    def _learn_unstable(self) -> None:
        """Train Φ_U on the joint risk, from new weights as long as that risk does not fall below f_S's."""
        plan, stable = self.plan, self._stable_risk()

        def stages() -> list[Stage]:
            parameters = self.network.unstable_parameters()
            return [
                Stage(
                    "unstable",
                    self._unstable_loss(),
                    parameters,
                    plan.unstable_steps,
                    plan.unstable_rate,
                    weight_decay=plan.weight_decay,
                )
            ]

        self.restarts = self._restarted("unstable", stages, reset_unstable, "joint", stable)

    def _restarted(
        self,
        name: str,
        stages: Callable[[], list[Stage]],
        reset: Callable[[SplitNetwork, int], None],
        part: str,
        baseline: float,
    ) -> int:
        """Train; while the risk is not below the baseline start again from new weights. Returns restarts."""
        plan = self.plan
        fresh = self._state()
        best, best_state = math.inf, fresh
        for attempt in range(plan.max_restarts + 1):
            if attempt:
                self.network.load_state_dict(fresh)
                reset(self.network, restart_seed(self.seed, attempt))
            history = self._train(f"{name}-{attempt}", stages(), early_stopping=name == "stable")
            risk = final_risk([row[part] for row in history])
            if risk < best:
                best, best_state = risk, self._state()
            if risk <= (1.0 - plan.min_gain) * baseline:
                break
        else:
            warnings.warn(
                f"In {plan.max_restarts + 1} starts the {name} part never lowered the risk by "
                f"{100 * plan.min_gain:g} % ({baseline:.4g} without it, {best:.4g} with it): there is "
                "little in these features. Train longer or wider, or lower the penalty, if there should "
                "be more.",
                UserWarning,
                stacklevel=2,
            )
        self.network.load_state_dict(best_state)
        return attempt

    def _state(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.network.state_dict().items()}

    def _stable_risk(self) -> float:
        objective = self._objective("stable", penalties=False)
        self.network.eval()
        values = []
        with torch.no_grad():
            frozen = self._frozen_stable()
            for step in range(1 if self.plan.batch_size is None else 8):
                batch = self.source.batch(self.plan.batch_size, self.seed, step)
                features, logits = frozen(batch)
                rows = zip(
                    *(t.split(list(batch.sizes)) for t in (features, logits, batch.target)), strict=True
                )
                values.append(float(objective([DomainOutput(*row) for row in rows]).stable))
        return float(np.mean(values))

    def _train(
        self, name: str, stages: Sequence[Stage], *, early_stopping: bool = True
    ) -> list[dict[str, Any]]:
        trainer = Trainer(
            self.network,
            self.source,
            batch_size=self.plan.batch_size,
            seed=self.seed,
            state=self.penalty,
            checkpoint=None if self.checkpoint is None else self.checkpoint / f"{name}.safetensors",
            checkpoint_every=self.plan.checkpoint_every,
            monitor=self.monitor if early_stopping else None,
            monitor_every=self.plan.monitor_every,
            patience=self.plan.patience,
            **self.options,
        )
        trainer.run(stages)
        self.history.extend(trainer.history)
        return trainer.history
