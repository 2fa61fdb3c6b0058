"""Many networks of one shape trained as one: stacked parameters and `vmap` (`torch.func`).

A network of 8 units spends its time in Python and in starting kernels. Stacking does that once for all
members. Each keeps its own rows, order of batches, initial weights and penalty weights, and ends where it
would have ended alone (up to rounding). `fit_many` is a trainer on many seeds, `learn_many` SFB on many seeds
and settings.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from sfboost.torch.learning import Course, few_threads, final_risk
from sfboost.torch.objective import DomainOutput, LossParts, NetworkObjective, NoPenalty, cut_by_domain
from sfboost.torch.plan import Goal, Phase, Plan, Trial, trials
from sfboost.torch.rows import ArraySource, epoch_order
from sfboost.torch.split_network import Outputs, SplitNetwork, seed_of
from sfboost_lab.baselines.contract import LabelledRows
from sfboost_lab.baselines.learned.actir import ACTIR, ACTIRObjective
from sfboost_lab.baselines.learned.generalisation import DomainGeneralisation
from sfboost_lab.baselines.learned.network import NetworkPredictor, NetworkProblem
from sfboost_lab.baselines.learned.penalties import INDEPENDENCE, PENALTIES, STACKABLE, IRMMatrix, make


class Member(NamedTuple):
    """One network of many, in one step: called, it answers with its own parameters."""

    network: nn.Module
    parameters: dict[str, Tensor]
    x: Tensor
    target: Tensor
    sizes: Sequence[int]
    settings: dict[str, Tensor]

    def __call__(self, *inputs: Any) -> Any:
        """Return what the network makes of the inputs."""
        return functional_call(self.network, self.parameters, inputs)


MemberLoss = Callable[[Member], LossParts]
History = dict[str, np.ndarray]


def require_stackable(title: str, penalty: nn.Module, listed: Mapping[str, type[nn.Module]]) -> None:
    """Refuse a penalty that cannot train many networks at once, with those that can."""
    if type(penalty) not in STACKABLE:
        known = ", ".join(name for name, penalty in listed.items() if penalty in STACKABLE)
        raise ValueError(f"{title} cannot train many at once; these can: {known}. Train each alone.")


class _StackedRows:
    """The rows of all members: their data side by side, and which of them a step takes."""

    def __init__(
        self,
        sources: Sequence[ArraySource],
        seeds: Sequence[int],
        batch_size: int | None,
        reshuffle: bool = True,
    ) -> None:
        sizes = {source.sizes for source in sources}
        if len(sizes) > 1:
            raise ValueError(
                f"Networks that train at once need domains of the same sizes, got {sorted(sizes)[:3]}. Train "
                "them in groups, or one after the other."
            )
        self.x = torch.stack([source.x for source in sources])
        self.target = torch.stack([source.target for source in sources])
        self.sources, self.seeds = sources, seeds
        self.batch_size, self.reshuffle = batch_size, reshuffle
        self.whole = sources[0].sizes
        self.sizes = self.whole if batch_size is None else tuple(min(batch_size, n) for n in self.whole)
        self._orders: dict[tuple[int, int], Tensor] = {}

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Return x (members, rows, ...) and targets of a step."""
        if self.sources[0].strata is not None:
            members = zip(self.sources, self.seeds, strict=True)
            drawn = [source.batch_rows(self.batch_size, seed, step) for source, seed in members]
            rows = torch.stack([rows for rows, _ in drawn])  # type: ignore[misc]
        elif self.batch_size is None:
            return self.x, self.target
        else:
            rows = self._in_turn(step)
        member = torch.arange(len(rows))[:, None]
        return self.x[member, rows], self.target[member, rows]

    def _in_turn(self, step: int) -> Tensor:
        """The next rows of each domain, in the order of their pass."""
        parts, start = [], 0
        for domain, (size, whole) in enumerate(zip(self.sizes, self.whole, strict=True)):
            first, last = step * size, (step + 1) * size
            for epoch in range(first // whole, (last - 1) // whole + 1):
                order = self._order(domain, epoch if self.reshuffle else 0, whole)
                parts.append(start + order[:, max(first - epoch * whole, 0) : last - epoch * whole])
            start += whole
        return torch.cat(parts, dim=1)

    def _order(self, domain: int, epoch: int, whole: int) -> Tensor:
        if (domain, epoch) not in self._orders:
            self._orders = {key: value for key, value in self._orders.items() if key[1] >= epoch - 1}
            drawn = [epoch_order(seed, domain, epoch, whole) for seed in self.seeds]
            self._orders[domain, epoch] = torch.stack(drawn)
        return self._orders[domain, epoch]


def train_many(
    networks: Sequence[nn.Module],
    sources: Sequence[ArraySource],
    seeds: Sequence[int],
    loss: MemberLoss,
    settings: Mapping[str, Tensor],
    *,
    steps: int,
    learning_rate: float,
    trained: Sequence[str] | None = None,
    batch_size: int | None = None,
    cosine: bool = False,
    weight_decay: float = 0.0,
    reshuffle: bool = True,
) -> History:
    """Train networks of one shape together; their weights are changed in place.

    Parameters
    ----------
    networks : sequence of nn.Module
        The members, all of the same architecture and without dropout or batch norm.
    sources : sequence of ArraySource
        Each member's rows.
    seeds : sequence of int
        Each member's seed of the batches.
    loss : callable
        Of one `Member`.
    settings : mapping of str to Tensor of shape (members, ...)
        What differs between members, handed to `loss` one member at a time.
    steps, learning_rate, batch_size, cosine, weight_decay
        As in `sfboost.torch.trainer.Stage` and `StageRunner`.
    trained : sequence of str, optional
        Names of the parameters to train; all by default.
    reshuffle : bool
        Whether each pass takes the rows in a new order; else they come as in the first one.

    Returns
    -------
    dict of str to ndarray of shape (steps, members)
        The parts of the loss.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from sfboost_lab.baselines.learned.actir import ACTIRNetwork
    >>> x, y, d = torch.randn(8, 2), np.arange(8) % 2, np.arange(8) // 4
    >>> nets = [ACTIRNetwork(torch.nn.Linear(2, 4), width=4, n_features=3, n_classes=2, n_domains=2)
    ...         for _ in "ab"]
    >>> settings = {"proxy": torch.ones(2), "gradient": torch.ones(2)}
    >>> history = train_many(nets, [ArraySource(x, y, d, 2, 2)] * 2, [0, 1], actir_loss, settings,
    ...                      steps=3, learning_rate=0.01)
    >>> history["total"].shape
    (3, 2)
    """
    rows = _StackedRows(sources, seeds, batch_size, reshuffle)
    stacked, _ = stack_module_state(list(networks))
    names = list(stacked) if trained is None else list(trained)
    parameters = {name: stacked[name].detach().clone().requires_grad_(name in names) for name in stacked}
    base = networks[0]

    def member(
        own: dict[str, Tensor], x: Tensor, target: Tensor, other: dict[str, Tensor]
    ) -> tuple[Tensor, ...]:
        return tuple(loss(Member(base, own, x, target, rows.sizes, other)))

    together = vmap(member, randomness="error")
    optimizer = torch.optim.Adam(
        [parameters[name] for name in names], lr=learning_rate, weight_decay=weight_decay
    )
    history: list[Tensor] = []
    for step in range(steps):
        if cosine:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * 0.5 * (1.0 + math.cos(math.pi * step / steps))
        x, target = rows.batch(step)
        parts = together(parameters, x, target, dict(settings))
        optimizer.zero_grad(set_to_none=True)
        # Members do not touch: the gradient of the sum is each member's own gradient.
        parts[0].sum().backward()
        optimizer.step()
        history.append(torch.stack([part.detach().expand(len(networks)) for part in parts]))
    for i, network in enumerate(networks):
        network.load_state_dict({name: value[i].detach() for name, value in parameters.items()})
        network.eval()
    values = (
        torch.stack(history).double().numpy()
        if history
        else np.zeros((0, len(LossParts._fields), len(networks)))
    )
    return {name: values[:, k] for k, name in enumerate(LossParts._fields)}


def actir_loss(member: Member) -> LossParts:
    """ACTIR's objective for one member; settings ``proxy`` (λ) and ``gradient`` (λ₂)."""
    objective = ACTIRObjective(member.settings["proxy"], member.settings["gradient"])
    return objective(member(member.x), member.parameters["eta"], member.target, member.sizes)


def irm_loss(member: Member) -> LossParts:
    """Risk + λ · mean square of the gradient in the matrix that maps Φ to the logits, which is [I; 0]."""
    features: Tensor = member(member.x)
    logits = features[:, : member.target.shape[1]]
    objective = _stable_objective(IRMMatrix(), member.settings["weight"])
    return objective(cut_by_domain(member.sizes, features, logits, member.target))


def _stable_objective(penalty: nn.Module, weight: Any, **options: Any) -> NetworkObjective:
    """The risk of the stable part and its penalty, nothing else."""
    told = {"penalty_weight": weight, "risks": "stable", **options}
    return NetworkObjective(torch.empty(0), penalty, NoPenalty(), **told)


def fit_many(
    trainer: DomainGeneralisation | ACTIR,
    trains: Sequence[LabelledRows],
    seeds: Sequence[int],
    *,
    in_order: bool = False,
    irm_weight: float | None = None,
) -> list[NetworkPredictor]:
    """Train one predictor per seed, all at once; each ends where `trainer.fit` would, up to rounding.

    Parameters
    ----------
    trainer : trainer of a network without dropout
        ACTIR, or domain generalisation with a penalty of `STACKABLE`.
    trains : sequence of LabelledRows
        Each member's rows; domains of the same sizes.
    seeds : sequence of int
    in_order : bool
        Of ACTIR: batches come in the same order in every pass, as in the code behind the published table.
    irm_weight : float, optional
        Train ACTIR's network by IRM with this λ instead, as that code does.

    Returns
    -------
    list of NetworkPredictor

    Examples
    --------
    >>> import numpy as np
    >>> from sfboost_lab.baselines.learned.generalisation import ERMTrainer
    >>> rows = LabelledRows(np.array([[-1.0], [1.0]] * 4), np.array([0, 1] * 4), np.repeat([0, 1], 4))
    >>> len(fit_many(ERMTrainer(network="small", steps=2), [rows, rows], [0, 1]))
    2
    """
    if trainer.dropout:
        raise ValueError(
            f"Networks with dropout={trainer.dropout} cannot train at once; call `fit` for each."
        )
    problems = [trainer.pose(train, seed) for train, seed in zip(trains, seeds, strict=True)]
    with few_threads(True):
        if isinstance(trainer, ACTIR):
            _train_actir(trainer, problems, seeds, in_order, irm_weight)
        else:
            require_stackable(trainer.title, trainer.penalty(), PENALTIES)
            for stage, penalised in ((2, False), (3, True)):
                own = [seed_of(seed, stage) for seed in seeds]
                _train_stage(trainer, problems, own, penalised=penalised)
    return [trainer.predictor_of(problem) for problem in problems]


def _train_actir(
    trainer: ACTIR,
    problems: Sequence[NetworkProblem],
    seeds: Sequence[int],
    in_order: bool,
    irm_weight: float | None,
) -> None:
    """Φ has three outputs, the first two of which are the logits; nothing is annealed."""
    names = dict(problems[0].network.named_parameters())
    like = torch.ones(len(problems), dtype=names["eta"].dtype)
    settings = {"proxy": trainer.proxy_weight * like, "gradient": trainer.gradient_weight * like}
    if irm_weight is not None:
        settings = {"weight": irm_weight * like}
        del names["eta"]
    train_many(
        [problem.network for problem in problems],
        [problem.source for problem in problems],
        [seed_of(seed, 2) for seed in seeds],
        actir_loss if irm_weight is None else irm_loss,
        settings,
        steps=trainer.steps,
        learning_rate=trainer.learning_rate,
        trained=list(names),
        batch_size=trainer.batch_size,
        weight_decay=trainer.l2,
        reshuffle=not in_order,
    )


class _OneHead(nn.Module):
    """The stable part of a split network, called as a whole: features and logits."""

    def __init__(self, network: SplitNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.network.stable_features(x)
        return features, self.network.stable_logits(features)


def _train_stage(
    trainer: DomainGeneralisation,
    problems: Sequence[NetworkProblem],
    seeds: Sequence[int],
    *,
    penalised: bool,
) -> None:
    penalty, weight = (trainer.penalty(), trainer.weight) if penalised else (NoPenalty(), 1.0)
    objective = _stable_objective(penalty, weight, rescale=trainer.rescale)

    def loss(member: Member) -> LossParts:
        return objective(cut_by_domain(member.sizes, *member(member.x), member.target))

    networks = [_OneHead(problem.network) for problem in problems]
    stable = {id(p) for p in problems[0].network.stable_parameters()}
    train_many(
        networks,
        [problem.source for problem in problems],
        seeds,
        loss,
        {"member": torch.arange(len(problems))},
        steps=trainer.steps if penalised else trainer.pretrain_steps,
        learning_rate=trainer.learning_rate,
        trained=[name for name, p in networks[0].named_parameters() if id(p) in stable],
        batch_size=trainer.batch_size,
        cosine=trainer.cosine and penalised,
        weight_decay=trainer.l2,
    )


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


def _by_domain(outputs: Outputs, target: Tensor, sizes: Sequence[int]) -> list[DomainOutput]:
    stable, unstable, stable_logits, unstable_logits = outputs
    return cut_by_domain(sizes, stable, stable_logits, target, unstable, unstable_logits)


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
                domains = _by_domain(network(source.x, source.sizes), source.target, source.sizes)
                risks.append(float(np.mean([domain.risk.item() for domain in domains])))
        return risks

    def _train(self, phase: Phase, members: Sequence[int]) -> History:
        penalty = make(PENALTIES, self.goals[0].penalty)
        independence = make(INDEPENDENCE, self.goals[0].independence)

        def loss(member: Member) -> LossParts:
            outputs = member(member.x, member.sizes)
            if phase.risks == "guess":
                outputs = outputs._replace(stable_logits=outputs.unstable_logits)
            told = member.settings
            weights = told["penalty"], told["independence"]
            objective = phase.objective(self.plan, told["log_prior"], weights, penalty, independence)
            return objective(_by_domain(outputs, member.target, member.sizes))

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
