"""Many SFB networks at once: S seeds times H settings as one batched model.

The counterpart of `Learner` for small networks; the batched loop itself is in `sfboost.torch.stacking`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from sfboost.torch.batches import ArraySource
from sfboost.torch.building import (
    chance_risk,
    final_risk,
    guess_classes,
    reset_stable,
    reset_unstable,
    restart_seed,
)
from sfboost.torch.independence import make_independence_penalty
from sfboost.torch.learning import few_threads, independence_weight
from sfboost.torch.objective import LossParts, Objective
from sfboost.torch.penalties import NoPenalty, make_stability_penalty
from sfboost.torch.plan import Goal, Plan
from sfboost.torch.split_network import SplitNetwork, by_domain
from sfboost.torch.stacking import History, train_many

BATCHED_STABILITY = ("irm", "irm-split", "irm-matrix", "vrex", "sd", "fishr", "none")
BATCHED_INDEPENDENCE = ("proxy", "proxy-features", "none")


def learn_many(
    networks: Sequence[SplitNetwork],
    sources: Sequence[ArraySource],
    goals: Sequence[Goal],
    seeds: Sequence[int],
    plan: Plan,
) -> tuple[History, np.ndarray]:
    """Train many `SplitNetwork` at once, each for its own goal; the counterpart of `Learner.learn`.

    Parameters
    ----------
    networks, sources, goals, seeds : sequences of the same length
        One entry per member. Goals may differ in ``penalty_weight`` and ``independence_weight`` only.
    plan : Plan
        How all of them are trained.

    Returns
    -------
    history : dict of str to ndarray of shape (steps, members)
        The stages one after the other (restarts of single members are not in it).
    restarts : ndarray of shape (members,)
        How often each member's unstable part was started again.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from sfboost.torch.building import build_network
    >>> from sfboost.torch.networks import MLP
    >>> x, y, d = torch.randn(8, 2), np.arange(8) % 2, np.arange(8) // 4
    >>> nets = [build_network(lambda: MLP(2, (4,)), x, split="shared", n_classes=2, n_domains=2, n_stable=1,
    ...                       n_unstable=1, seed=s) for s in (0, 1)]
    >>> goals = [Goal(split="shared", penalty_weight=w) for w in (1.0, 10.0)]
    >>> history, restarts = learn_many(nets, [ArraySource(x, y, d, 2, 2)] * 2, goals, [0, 1], Plan(steps=3))
    >>> history["joint"].shape
    (3, 2)
    """
    with few_threads(True):
        return _learn_many(networks, sources, goals, seeds, plan)


def _learn_many(
    networks: Sequence[SplitNetwork],
    sources: Sequence[ArraySource],
    goals: Sequence[Goal],
    seeds: Sequence[int],
    plan: Plan,
) -> tuple[History, np.ndarray]:
    split = _common(goals).split
    many = _Many(networks, sources, goals, seeds, plan)
    everyone = list(range(len(networks)))
    if split == "shared":
        histories = [many.two_stages(everyone, "both")]
        restarts = np.zeros(len(networks), dtype=int)
    else:
        histories = [many.balance()] if plan.balance and plan.unstable_steps else []
        chance = np.array([chance_risk(source) for source in sources])
        histories.append(
            many.restarted(lambda m: many.two_stages(m, "stable"), reset_stable, "stable", chance)[0]
        )
        for source in many.sources:
            source.balance(None)
        history, restarts = many.unstable()
        histories += [history] if plan.unstable_steps else []
        if split == "alternating":
            histories.append(many.again(everyone))
    return _join(histories), restarts


def _join(histories: Sequence[History]) -> History:
    return {name: np.concatenate([h[name] for h in histories]) for name in LossParts._fields}


def _common(goals: Sequence[Goal]) -> Goal:
    def common(goal: Goal) -> Goal:
        return replace(goal, penalty_weight=1.0, independence_weight=1.0)

    goal = goals[0]
    if any(common(other) != common(goal) for other in goals):
        raise ValueError(
            "Goals that train at once may differ in penalty_weight and independence_weight only."
        )
    for kind, value, known in (
        ("stability penalty", goal.penalty, BATCHED_STABILITY),
        ("independence penalty", goal.independence, BATCHED_INDEPENDENCE),
    ):
        if value not in known:
            raise ValueError(
                f"The {kind} {value!r} cannot train many at once; these can: {', '.join(known)}."
            )
    return goal


def _names(network: nn.Module, parameters: Sequence[nn.Parameter]) -> list[str]:
    wanted = {id(p) for p in parameters}
    return [name for name, p in network.named_parameters() if id(p) in wanted]


class _Many:
    """The stages of `Learner`, for all members."""

    def __init__(
        self,
        networks: Sequence[SplitNetwork],
        sources: Sequence[ArraySource],
        goals: Sequence[Goal],
        seeds: Sequence[int],
        plan: Plan,
    ) -> None:
        self.networks, self.goals, self.seeds, self.plan = networks, goals, seeds, plan
        # Copies that share the rows: balancing is each member's own.
        self.sources = [copy.copy(source) for source in sources]

    def two_stages(self, members: Sequence[int], risks: str) -> History:
        """Train without, then with penalties."""
        plan, network = self.plan, self.networks[0]
        parameters = network.stable_parameters() if risks == "stable" else list(network.parameters())
        names = _names(network, parameters)
        stages = []
        if plan.pretrain_steps:
            stages.append(self._train(members, risks, names, plan.pretrain_steps, penalties=False))
        stages.append(self._train(members, risks, names, plan.steps, penalties=True))
        return _join(stages)

    def again(self, members: Sequence[int]) -> History:
        """Train f_S under all penalties with Φ_U frozen."""
        names = _names(self.networks[0], self.networks[0].stable_parameters())
        return self._train(members, "both", names, self.plan.steps, penalties=True, detach_stable=True)

    def balance(self) -> History:
        """Let each member's first guess Û balance its rows; see `Learner`."""
        states = [copy.deepcopy(network.state_dict()) for network in self.networks]
        chance = np.array([chance_risk(source) for source in self.sources])
        history, _ = self.restarted(lambda m: self._narrow(m, "guess"), reset_unstable, "stable", chance)
        for network, source, state in zip(self.networks, self.sources, states, strict=True):
            source.balance(guess_classes(network, source))
            network.load_state_dict(state)
        return history

    def unstable(self) -> tuple[History, np.ndarray]:
        """Train Φ_U of all, then again those whose joint risk did not fall."""
        if not self.plan.unstable_steps:
            return {}, np.zeros(len(self.networks), dtype=int)
        stable = self._stable_risks()
        return self.restarted(lambda m: self._narrow(m, "joint"), reset_unstable, "joint", stable)

    def _narrow(self, members: Sequence[int], risks: str) -> History:
        names = _names(self.networks[0], self.networks[0].unstable_parameters())
        return self._train(members, risks, names, self.plan.unstable_steps, penalties=risks == "joint")

    def restarted(
        self,
        train: Callable[[Sequence[int]], History],
        reset: Callable[[SplitNetwork, int], None],
        part: str,
        baseline: np.ndarray,
    ) -> tuple[History, np.ndarray]:
        """Train all, then those again whose risk is not below the baseline; the best start is kept."""
        plan = self.plan
        restarts = np.zeros(len(self.networks), dtype=int)
        fresh = [copy.deepcopy(network.state_dict()) for network in self.networks]
        best: dict[int, tuple[float, dict[str, Tensor]]] = {}
        todo = list(range(len(self.networks)))
        first: History = {}
        for attempt in range(plan.max_restarts + 1):
            for i in todo if attempt else ():
                self.networks[i].load_state_dict(fresh[i])
                reset(self.networks[i], restart_seed(self.seeds[i], attempt))
                restarts[i] = attempt
            history = train(todo)
            first = first or history
            risks = {i: final_risk(history[part][:, k].tolist()) for k, i in enumerate(todo)}
            for i, risk in risks.items():
                if i not in best or risk < best[i][0]:
                    best[i] = (risk, copy.deepcopy(self.networks[i].state_dict()))
            todo = [i for i in todo if not risks[i] <= (1.0 - plan.min_gain) * baseline[i]]
            if not todo:
                break
        for i, (_, state) in best.items():
            self.networks[i].load_state_dict(state)
        return first, restarts

    def _train(
        self,
        members: Sequence[int],
        risks: str,
        names: Sequence[str],
        steps: int,
        *,
        penalties: bool,
        detach_stable: bool = False,
    ) -> History:
        plan, goal = self.plan, self.goals[0]
        penalty = make_stability_penalty(goal.penalty) if penalties else NoPenalty()
        independence = make_independence_penalty(goal.independence) if penalties else NoPenalty()
        template = Objective(
            torch.empty(0),
            penalty,
            independence,
            risks="stable" if risks == "guess" else risks,
            gamma=plan.gamma if risks == "both" else None,
            detach_stable=plan.detach_stable or detach_stable,
            rescale=plan.rescale,
        )

        def loss(
            network: nn.Module,
            parameters: dict[str, Tensor],
            x: Tensor,
            target: Tensor,
            sizes: Sequence[int],
            settings: dict[str, Tensor],
        ) -> LossParts:
            outputs = functional_call(network, parameters, (x, sizes))
            if risks == "guess":
                outputs = outputs._replace(stable_logits=outputs.unstable_logits)
            objective = replace(
                template,
                log_prior=settings["log_prior"],
                penalty_weight=settings["penalty"],
                independence_weight=settings["independence"],
            )
            return objective(by_domain(outputs, target, sizes))

        joint = risks in ("joint", "guess")
        rate = plan.unstable_rate if joint else plan.learning_rate
        return train_many(
            [self.networks[i] for i in members],
            [self.sources[i] for i in members],
            [self.seeds[i] for i in members],
            loss,
            self._settings(members, risks, penalties=penalties),
            steps=steps,
            learning_rate=rate,
            trained=names,
            batch_size=plan.batch_size,
            cosine=plan.cosine and penalties and not joint,
            weight_decay=plan.weight_decay,
        )

    def _settings(self, members: Sequence[int], risks: str, *, penalties: bool) -> dict[str, Tensor]:
        like = self.sources[0].target
        goals = [self.goals[i] for i in members]
        penalty = [goal.penalty_weight if penalties else 1.0 for goal in goals]
        independence = [independence_weight(goal, risks) if penalties else 0.0 for goal in goals]
        return {
            "log_prior": torch.stack([self.sources[i].log_prior() for i in members]).to(like),
            "penalty": torch.tensor(penalty, dtype=like.dtype),
            "independence": torch.tensor(independence, dtype=like.dtype),
        }

    def _stable_risks(self) -> np.ndarray:
        risks = []
        for source, network in zip(self.sources, self.networks, strict=True):
            with torch.no_grad():
                domains = by_domain(network(source.x, source.sizes), source.target, source.sizes)
                risks.append(np.mean([domain.risk.item() for domain in domains]))
        return np.array(risks)
