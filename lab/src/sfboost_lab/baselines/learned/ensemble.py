"""Many SFB networks at once: S seeds times H settings as one batched model.

The counterpart of `Learner` for small networks; the batched loop itself is in `stacking`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from sfboost.torch.learning import Course, Phase, Trial, few_threads, trials
from sfboost.torch.objective import LossParts
from sfboost.torch.plan import Goal, Plan
from sfboost.torch.rows import ArraySource
from sfboost.torch.split_network import SplitNetwork, by_domain, final_risk
from sfboost_lab.baselines.learned.penalties import INDEPENDENCE, PENALTIES, make
from sfboost_lab.baselines.learned.stacking import History, require_stackable, train_many


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
    >>> from sfboost.torch.split_network import build_network
    >>> from sfboost.torch.networks import MLP
    >>> x, y, d = torch.randn(8, 2), np.arange(8) % 2, np.arange(8) // 4
    >>> nets = [build_network(lambda: MLP(2, (4,)), x, split="shared", n_classes=2, n_domains=2, n_stable=1,
    ...                       n_unstable=1, seed=s) for s in (0, 1)]
    >>> goals = [Goal(split="shared", penalty_weight=w) for w in (1.0, 10.0)]
    >>> history, restarts = learn_many(nets, [ArraySource(x, y, d, 2, 2)] * 2, goals, [0, 1], Plan(steps=3))
    >>> history["joint"].shape
    (3, 2)
    """
    many = _Many(networks, sources, goals, seeds, plan)
    with few_threads(True):
        many.follow(trials(_common(goals), plan))
    return _join(many.histories), many.restarts_of


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
    for listed, asked in ((PENALTIES, goal.penalty), (INDEPENDENCE, goal.independence)):
        require_stackable(f"The penalty {asked!r}", make(listed, asked), listed)
    return goal


class _Many(Course):
    """All members through the course of training."""

    def __init__(
        self,
        networks: Sequence[SplitNetwork],
        sources: Sequence[ArraySource],
        goals: Sequence[Goal],
        seeds: Sequence[int],
        plan: Plan,
    ) -> None:
        # Copies that share the rows: balancing is each member's own.
        self.rows = [copy.copy(source) for source in sources]
        super().__init__(networks, self.rows, seeds, plan)
        self.goals = goals
        self.histories: list[History] = []

    def attempt(self, trial: Trial, number: int, members: Sequence[int]) -> list[float]:
        """Train these members at once; the history is that of the first attempt."""
        history = _join([self._train(phase, members) for phase in trial.phases])
        if number == 0:
            self.histories.append(history)
        risks = history[trial.lowers or "total"]
        return [final_risk(risks[:, k].tolist()) for k in range(len(members))]

    def stable_risks(self) -> list[float]:
        """Return the risk of each member's f_S on all of its rows."""
        risks = []
        for source, network in zip(self.rows, self.networks, strict=True):
            with torch.no_grad():
                domains = by_domain(network(source.x, source.sizes), source.target, source.sizes)
                risks.append(float(np.mean([domain.risk.item() for domain in domains])))
        return risks

    def _train(self, phase: Phase, members: Sequence[int]) -> History:
        penalty = make(PENALTIES, self.goals[0].penalty)
        independence = make(INDEPENDENCE, self.goals[0].independence)

        def loss(
            network: nn.Module,
            parameters: dict[str, Tensor],
            x: Tensor,
            target: Tensor,
            sizes: Sequence[int],
            settings: dict[str, Tensor],
        ) -> LossParts:
            outputs = functional_call(network, parameters, (x, sizes))
            if phase.risks == "guess":
                outputs = outputs._replace(stable_logits=outputs.unstable_logits)
            weights = settings["penalty"], settings["independence"]
            objective = phase.objective(self.plan, settings["log_prior"], weights, penalty, independence)
            return objective(by_domain(outputs, target, sizes))

        return train_many(
            [self.networks[i] for i in members],
            [self.rows[i] for i in members],
            [self.seeds[i] for i in members],
            loss,
            self._settings(phase, members),
            steps=phase.steps,
            learning_rate=phase.learning_rate,
            trained=self._trained(phase),
            batch_size=self.plan.batch_size,
            cosine=phase.cosine,
            weight_decay=phase.weight_decay,
        )

    def _trained(self, phase: Phase) -> list[str]:
        """Names of the parameters that a phase changes."""
        first = self.networks[0]
        parts = {"stable": first.stable_parameters, "unstable": first.unstable_parameters}
        wanted = {id(p) for p in parts.get(phase.trained, first.parameters)()}
        return [name for name, p in first.named_parameters() if id(p) in wanted]

    def _settings(self, phase: Phase, members: Sequence[int]) -> dict[str, Tensor]:
        like = self.rows[0].target
        weights = torch.tensor([phase.weights(self.goals[i]) for i in members], dtype=like.dtype)
        return {
            "log_prior": torch.stack([self.rows[i].log_prior() for i in members]).to(like),
            "penalty": weights[:, 0],
            "independence": weights[:, 1],
        }
