"""One network through its stages: what each trains, which rows it sees, when it is started again.

The paper splits the output of one network (``split="shared"``) and notes that Φ_S and Φ_U could be learned
apart. ``split="separate"`` does that: f_S by risk and stability penalty alone; then, with f_S frozen, a
narrow Φ_U that is trained briefly on the joint risk. ``split="alternating"`` minimises Eq. 5.1 in turns: the
same two stages, Φ_U without the independence penalty, and then f_S again under all penalties with Φ_U frozen,
so that it is f_S that becomes independent (`docs/decisions` has the measurements behind this).

One network and, in the laboratory, many at once go through the same list.
"""

from __future__ import annotations

import contextlib
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sfboost.notices import warn
from sfboost.torch.objective import (
    LossParts,
    NetworkObjective,
    NoPenalty,
    cut_by_domain,
    make_independence_penalty,
    make_stability_penalty,
)
from sfboost.torch.plan import Goal, Plan
from sfboost.torch.rows import ArraySource, Batch
from sfboost.torch.split_network import (
    SplitNetwork,
    chance_risk,
    final_risk,
    guess_classes,
    reset_stable,
    reset_unstable,
    seed_of,
)
from sfboost.torch.trainer import Loss, Stage, StageRunner


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Steps with one optimiser.

    Attributes
    ----------
    name : str
        For the history.
    risks : {"both", "stable", "joint", "guess"}
        What is lowered; "guess" is the risk of Φ_U alone.
    trained : {"all", "stable", "unstable"}
        Whose weights change.
    steps, learning_rate, weight_decay, cosine
        As in `sfboost.torch.trainer.Stage`.
    penalised : bool
        Whether penalties count.
    free : bool
        Whether the independence penalty is only looked at.
    detached : bool
        Whether the joint risk leaves f_S alone.
    """

    name: str
    risks: str
    trained: str
    steps: int
    learning_rate: float
    weight_decay: float = 0.0
    cosine: bool = False
    penalised: bool = True
    free: bool = False
    detached: bool = False

    def weights(self, goal: Goal) -> tuple[float, float]:
        """Return λ_S and λ_C."""
        if not self.penalised:
            return 1.0, 0.0
        return goal.penalty_weight, 0.0 if self.free else goal.independence_weight

    def objective(
        self,
        plan: Plan,
        log_prior: Tensor,
        weights: tuple[float | Tensor, float | Tensor],
        penalty: nn.Module,
        independence: nn.Module,
    ) -> NetworkObjective:
        """Return the loss of the outputs of all domains."""
        nothing = NoPenalty()
        return NetworkObjective(
            log_prior,
            penalty if self.penalised else nothing,
            independence if self.penalised else nothing,
            *weights,
            risks="stable" if self.risks == "guess" else self.risks,
            detach_stable=self.detached,
            rescale=plan.rescale,
        )


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Phases that are one attempt.

    Attributes
    ----------
    name : str
    phases : tuple of Phase
    lowers : {"stable", "joint", None}
        The risk that must fall, else the attempt is made again; None for one attempt.
    anew : {"stable", "unstable"}
        Whose weights are then drawn anew.
    watched : bool
        Whether rows that are not trained on may end a phase.
    """

    name: str
    phases: tuple[Phase, ...]
    lowers: str | None = None
    anew: str = ""
    watched: bool = True


def trials(goal: Goal, plan: Plan) -> list[Trial]:
    """Return all of training, in order.

    Examples
    --------
    >>> [trial.name for trial in trials(Goal(split="alternating"), Plan())]
    ['guess', 'stable', 'unstable', 'again']
    """
    if goal.split == "shared":
        return [Trial(name="shared", phases=_two(plan, "joint", "both", "all"))]
    stable = _two(plan, "stable", "stable", "stable")
    made = [Trial(name="stable", phases=stable, lowers="stable", anew="stable")]
    if plan.unstable_steps:
        made.append(unstable_trial(goal, plan))
        if plan.balance:
            made.insert(0, _narrow(plan, "guess", "guess", "stable", penalised=False))
    if goal.split == "alternating":
        made.append(Trial(name="again", phases=(_phase(plan, "again", "both", "stable", detached=True),)))
    return made


def unstable_trial(goal: Goal, plan: Plan) -> Trial:
    """Return the training of Φ_U beside an f_S that is trained already."""
    return _narrow(plan, "unstable", "joint", "joint", free=goal.split == "alternating")


def _two(plan: Plan, name: str, risks: str, trained: str) -> tuple[Phase, ...]:
    """First without, then with penalties."""
    last = _phase(plan, name, risks, trained)
    if not plan.pretrain_steps:
        return (last,)
    first = replace(last, name="pretrain", steps=plan.pretrain_steps, cosine=False, penalised=False)
    return (first, last)


def _phase(plan: Plan, name: str, risks: str, trained: str, **more: Any) -> Phase:
    told = {"steps": plan.steps, "learning_rate": plan.learning_rate, "cosine": plan.cosine} | more
    return Phase(name=name, risks=risks, trained=trained, weight_decay=plan.weight_decay, **told)


def _narrow(plan: Plan, name: str, risks: str, lowers: str, **more: Any) -> Trial:
    """Φ_U, briefly."""
    briefly = {"steps": plan.unstable_steps, "learning_rate": plan.unstable_rate, "cosine": False}
    phase = _phase(plan, name, risks, "unstable", **briefly, **more)
    return Trial(name=name, phases=(phase,), lowers=lowers, anew="unstable", watched=False)


_RESETS = {"stable": reset_stable, "unstable": reset_unstable}


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
    """

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

    def give_up(self, trial: Trial, baseline: float, best: float) -> None:  # noqa: B027
        """Take note of a member that no attempt has helped."""

    def follow(self, course: Sequence[Trial]) -> None:
        """Go through all trials."""
        for trial in course:
            if trial.name == "guess":
                self._balance(trial)
                continue
            if trial.lowers:
                restarts = self._restarted(trial)
            else:
                self.attempt(trial, 0, range(len(self.networks)))
            if trial.name == "stable":
                for source in self.sources:
                    source.balance(None)
            elif trial.name == "unstable":
                self.restarts_of = restarts

    def _balance(self, trial: Trial) -> None:
        """Let Û, the guess of a Φ_U trained briefly, balance the rows; its weights are not kept."""
        start = self._states()
        self._restarted(trial)
        for network, source, state in zip(self.networks, self.sources, start, strict=True):
            source.balance(guess_classes(network, source))
            network.load_state_dict(state)

    def _restarted(self, trial: Trial) -> np.ndarray:
        """Train all, then those again whose risk is not below the baseline; the best attempt is kept."""
        without = self.stable_risks() if trial.lowers == "joint" else list(map(chance_risk, self.sources))
        restarts = np.zeros(len(self.networks), dtype=int)
        fresh = self._states()
        best: dict[int, tuple[float, dict[str, Tensor]]] = {}
        todo = list(range(len(self.networks)))
        for number in range(self.plan.max_restarts + 1):
            for i in todo if number else ():
                self.networks[i].load_state_dict(fresh[i])
                _RESETS[trial.anew](self.networks[i], seed_of(self.seeds[i], 1, number))
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
            if i in todo:
                self.give_up(trial, without[i], risk)
        return restarts

    def _states(self) -> list[dict[str, Tensor]]:
        return [copy.deepcopy(network.state_dict()) for network in self.networks]


_CHUNK = 8192
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
    source : ArraySource
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
        trainer_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__([network], [source], [seed], plan)
        self.network, self.source, self.goal, self.seed = network, source, goal, seed
        self.monitor, self.quiet = monitor, quiet
        self.options = trainer_options or {}
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
        """Train through the phases; the file of a checkpoint is named by the trial and its attempt."""
        name, folder = f"{trial.name}-{number}" if trial.lowers else trial.name, self.plan.checkpoint
        trainer = StageRunner(
            self.network,
            self.source,
            batch_size=self.plan.batch_size,
            seed=self.seed,
            state=self.penalty,
            checkpoint=None if folder is None else Path(folder) / f"{name}.safetensors",
            checkpoint_every=self.plan.checkpoint_every,
            monitor=self.monitor if trial.watched else None,
            **self.options,
        )
        trainer.run([self._stage(phase) for phase in trial.phases])
        self.history.extend(trainer.history)
        return [final_risk([row[trial.lowers or "total"] for row in trainer.history])]

    def _stage(self, phase: Phase) -> Stage:
        every = {"stable": self.network.stable_parameters, "unstable": self.network.unstable_parameters}
        found = every.get(phase.trained, self.network.parameters)()
        parameters = [parameter for parameter in found if parameter.requires_grad]
        loss, rate = self._loss(phase), phase.learning_rate
        return Stage(phase.name, loss, parameters, phase.steps, rate, phase.cosine, phase.weight_decay)

    def _loss(self, phase: Phase) -> Loss:
        """Return the loss of a batch; it runs no more of the network than the phase needs."""
        log_prior = self.source.log_prior().to(next(self.network.parameters()))
        objective = phase.objective(
            self.plan, log_prior, phase.weights(self.goal), self.penalty, self.independence
        )
        parameters = self.network.stable_parameters() if phase.risks in ("both", "stable") else []
        outputs = self._outputs(phase.risks)

        def loss(batch: Batch) -> LossParts:
            parts = [part.to(batch.target.dtype) for part in outputs(batch)]
            return objective(
                cut_by_domain(batch.sizes, parts[0], parts[1], batch.target, *parts[2:]), parameters
            )

        return loss

    def _outputs(self, risks: str) -> Callable[[Batch], Sequence[Tensor]]:
        """Return what the network says of a batch: stable features and logits, unstable ones."""
        network = self.network
        frozen = self._frozen_stable() if risks == "joint" else None

        def outputs(batch: Batch) -> Sequence[Tensor]:
            if risks == "both":
                stable, unstable, stable_logits, unstable_logits = network(batch.x, batch.sizes)
                return stable, stable_logits, unstable, unstable_logits
            if risks == "stable":
                stable = network.stable_features(batch.x)
                return stable, network.stable_logits(stable)
            unstable = network.unstable_features(batch.x)
            logits = network.unstable_logits(unstable, batch.sizes)
            if frozen is None:  # the guess of Φ_U alone stands where f_S will
                return logits, logits
            return *frozen(batch), unstable, logits

        return outputs

    def _frozen_stable(self) -> Callable[[Batch], tuple[Tensor, Tensor]]:
        """f_S does not change any more: it is computed once."""

        def compute(x: Tensor) -> tuple[Tensor, Tensor]:
            self.network.trunk.eval()
            with torch.no_grad():
                features = torch.cat([self.network.stable_features(part) for part in x.split(_CHUNK)])
                return features, self.network.stable_logits(features)

        found = compute(self.source.x)
        return lambda batch: found if batch.rows is None else (found[0][batch.rows], found[1][batch.rows])

    def give_up(self, trial: Trial, baseline: float, best: float) -> None:
        """Say that there is little in these features."""
        if self.quiet:
            return
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
