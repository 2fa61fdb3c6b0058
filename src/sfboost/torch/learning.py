"""One network through the stages of its plan: what each sees and lowers, when it is started again.

One network and, in the laboratory, many at once go through the same list of trials.
"""

from __future__ import annotations

import contextlib
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sfboost.notices import warn
from sfboost.torch.objective import (
    LossParts,
    cut_by_domain,
    make_independence_penalty,
    make_stability_penalty,
)
from sfboost.torch.plan import Goal, Phase, Plan, Trial, trials
from sfboost.torch.rows import ArraySource, Batch
from sfboost.torch.split_network import CHUNK, SplitNetwork, guess_classes, seed_of
from sfboost.torch.trainer import Loss, Stage, StageRunner


class Course(ABC):
    """Goes through trials with one or more networks; a subclass says how an attempt is made.

    Parameters
    ----------
    networks, sources, seeds : sequences of the same length
        The members; networks are trained in place.
    plan : Plan

    Attributes
    ----------
    restarts_of : ndarray of shape (members,)
        How often each member's unstable part was started again.
    quiet : bool
        Whether to say nothing where no attempt helps: to a search that is an answer.
    """

    quiet = True

    def __init__(
        self,
        networks: Sequence[SplitNetwork],
        sources: Sequence[ArraySource],
        seeds: Sequence[int],
        plan: Plan,
    ) -> None:
        self.networks, self.sources, self.seeds, self.plan = networks, sources, seeds, plan
        self.restarts_of = np.zeros(len(networks), dtype=int)

    @abstractmethod
    def attempt(self, trial: Trial, number: int, members: Sequence[int]) -> list[float]:
        """Train these members through the phases; return the risk that each ends with."""

    @abstractmethod
    def stable_risks(self) -> list[float]:
        """Return the risk of each member's f_S."""

    def follow(self, course: Sequence[Trial]) -> None:
        """Go through all trials."""
        for trial in course:
            if trial.name == "guess":
                self._balance(trial)
            elif trial.lowers:
                self._restarted(trial)
            else:
                self.attempt(trial, 0, range(len(self.networks)))
            if trial.name == "stable":
                for source in self.sources:
                    source.balance(None)

    def _balance(self, trial: Trial) -> None:
        """Let Û, the guess of a Φ_U trained briefly, balance the rows; its weights are not kept."""
        start = self._states()
        self._restarted(trial)
        for network, source, state in zip(self.networks, self.sources, start, strict=True):
            source.balance(guess_classes(network, source))
            network.load_state_dict(state)

    def _restarted(self, trial: Trial) -> None:
        """Train all, then those again whose risk is not below the baseline; the best attempt is kept."""
        without = (
            self.stable_risks()
            if trial.lowers == "joint"
            else [source.chance_risk() for source in self.sources]
        )
        restarts = np.zeros(len(self.networks), dtype=int)
        fresh = self._states()
        best: dict[int, tuple[float, dict[str, Tensor]]] = {}
        todo = list(range(len(self.networks)))
        for number in range(self.plan.max_restarts + 1):
            for i in todo if number else ():
                self.networks[i].load_state_dict(fresh[i])
                self.networks[i].reset(trial.phases[-1].trained, seed_of(self.seeds[i], 1, number))
                restarts[i] = number
            risks = dict(zip(todo, self.attempt(trial, number, todo), strict=True))
            for i, risk in risks.items():
                if i not in best or risk < best[i][0]:
                    best[i] = (risk, copy.deepcopy(self.networks[i].state_dict()))
            todo = [i for i in todo if not risks[i] <= (1.0 - self.plan.min_gain) * without[i]]
            if not todo:
                break
        for i, (risk, state) in best.items():
            self.networks[i].load_state_dict(state)
            if i in todo and not self.quiet:
                self._warn(trial, without[i], risk)
        if trial.name == "unstable":
            self.restarts_of = restarts

    def _warn(self, trial: Trial, baseline: float, best: float) -> None:
        """Say that there is little in these features."""
        warn(
            f"In {self.plan.max_restarts + 1} starts the {trial.name} part never lowered the risk by "
            f"{100 * self.plan.min_gain:g} % ({baseline:.4g} without it, {best:.4g} with it): there is "
            "little in these features. Train longer or wider, or lower the penalty, if there should "
            "be more.",
            UserWarning,
        )

    def _states(self) -> list[dict[str, Tensor]]:
        return [copy.deepcopy(network.state_dict()) for network in self.networks]


# Features and logits of f_S of a batch.
_Frozen = Callable[[Batch], tuple[Tensor, Tensor]]
# Smaller steps, in rows times features, are faster on one thread.
_ONE_THREAD_BELOW = 2**17


def final_risk(risks: list[float]) -> float:
    """Return the mean of the last ten steps: one batch alone is noisy.

    Examples
    --------
    >>> final_risk([9.0] + [1.0] * 10)
    1.0
    """
    return float(np.mean(risks[-10:]))


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
    source : ArraySource
        The labelled rows.
    goal : Goal
        What is learned.
    plan : Plan
        How.
    seed : int
        Of batches, dropout and restarts.
    callback : callable, optional
        Called after every step with its line of the history.
    monitor : callable, optional
        Loss on rows that are not trained on, which stop a stage.
    quiet : bool
        Whether to say nothing where no attempt helps: to a search that is an answer.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from sfboost.torch.split_network import build_network
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
        source: ArraySource,
        goal: Goal,
        plan: Plan,
        *,
        seed: int,
        monitor: Callable[[], float] | None = None,
        quiet: bool = False,
        callback: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        super().__init__([network], [source], [seed], plan)
        self.network, self.source, self.goal, self.seed = network, source, goal, seed
        self.monitor, self.quiet, self.callback = monitor, quiet, callback
        self.history: list[dict[str, Any]] = []
        # A copy: a penalty with buffers must not remember a former fit.
        self.penalty = copy.deepcopy(make_stability_penalty(goal.penalty)).train()
        self.independence = copy.deepcopy(make_independence_penalty(goal.independence)).train()

    def learn(self, course: Sequence[Trial] | None = None) -> None:
        """Run every stage of the plan, or those that are given."""
        with few_threads(self._small()):
            self.follow(trials(self.goal, self.plan) if course is None else course)

    @property
    def restarts(self) -> int:
        """How often the unstable part was started again."""
        return int(self.restarts_of[0])

    def _small(self) -> bool:
        sizes, of_domain = self.source.sizes, self.plan.batch_size
        n_rows = sum(sizes) if of_domain is None else of_domain * len(sizes)
        return n_rows * self.network.n_stable < _ONE_THREAD_BELOW

    def attempt(self, trial: Trial, number: int, members: Sequence[int]) -> list[float]:
        """Train through the phases."""
        trainer = StageRunner(
            self.network,
            self.source,
            batch_size=self.plan.batch_size,
            seed=self.seed,
            monitor=self.monitor if trial.watched else None,
            callback=self.callback,
        )
        trainer.run([self._stage(phase) for phase in trial.phases])
        self.history.extend(trainer.history)
        return [final_risk([row[trial.lowers or "total"] for row in trainer.history])]

    def _stage(self, phase: Phase) -> Stage:
        every = {"stable": self.network.stable_parameters, "unstable": self.network.unstable_parameters}
        found = every.get(phase.trained, self.network.parameters)()
        parameters = [parameter for parameter in found if parameter.requires_grad]
        rate = phase.learning_rate
        return Stage(
            phase.name, self._loss(phase), parameters, phase.steps, rate, phase.cosine, phase.weight_decay
        )

    def _loss(self, phase: Phase) -> Loss:
        """Return the loss of a batch; it runs no more of the network than the phase needs."""
        log_prior = self.source.log_prior().to(next(self.network.parameters()))
        objective = phase.objective(
            self.plan, log_prior, phase.weights(self.goal), self.penalty, self.independence
        )
        parameters = self.network.stable_parameters() if phase.risks in ("both", "stable") else []
        frozen = self._frozen_stable() if phase.risks == "joint" else None

        def loss(batch: Batch) -> LossParts:
            parts = [part.to(batch.target.dtype) for part in self._outputs(phase.risks, batch, frozen)]
            return objective(
                cut_by_domain(batch.sizes, parts[0], parts[1], batch.target, *parts[2:]), parameters
            )

        return loss

    def _outputs(self, risks: str, batch: Batch, frozen: _Frozen | None) -> Sequence[Tensor]:
        """What the network says of a batch: stable features and logits, unstable ones."""
        if risks == "both":
            stable, unstable, stable_logits, unstable_logits = self.network(batch.x, batch.sizes)
            return stable, stable_logits, unstable, unstable_logits
        if risks == "stable":
            stable = self.network.stable_features(batch.x)
            return stable, self.network.stable_logits(stable)
        unstable = self.network.unstable_features(batch.x)
        logits = self.network.unstable_logits(unstable, batch.sizes)
        if frozen is None:  # the guess of Φ_U alone stands where f_S will
            return logits, logits
        return *frozen(batch), unstable, logits

    def _frozen_stable(self) -> _Frozen:
        """f_S does not change any more: it is computed once."""
        self.network.trunk.eval()
        with torch.no_grad():
            parts = [self.network.stable_features(part) for part in self.source.x.split(CHUNK)]
            features = torch.cat(parts)
            logits = self.network.stable_logits(features)
        return lambda batch: (features[batch.rows], logits[batch.rows])

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
