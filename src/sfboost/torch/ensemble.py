"""Many small networks at once: S seeds times H settings as one batched model (`torch.func`).

A network of 8 units spends its time in Python and in starting kernels. Stacked parameters and `vmap` do that once for
all members. Each member keeps its own rows, order of batches, initial weights and penalty weights, and ends where it
would have ended alone (up to rounding).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from torch.func import functional_call, stack_module_state, vmap

import torch
from sfboost.torch.actir import ACTIRObjective
from sfboost.torch.batches import ArraySource, epoch_order
from sfboost.torch.independence import make_independence_penalty
from sfboost.torch.learning import Plan, guess_classes, reset_unstable, restart_seed
from sfboost.torch.objective import LossParts, Objective
from sfboost.torch.penalties import NoPenalty, make_stability_penalty
from sfboost.torch.split_network import SplitNetwork, by_domain
from torch import Tensor, nn

BATCHED_STABILITY = ("irm", "irm-split", "irm-matrix", "vrex", "sd", "fishr", "none")
BATCHED_INDEPENDENCE = ("proxy", "proxy-features", "none")

MemberLoss = Callable[
    [nn.Module, dict[str, Tensor], Tensor, Tensor, Sequence[int], dict[str, Tensor]], LossParts
]
History = dict[str, np.ndarray]


class _StackedRows:
    """The rows of all members: their data side by side, and which of them a step takes."""

    def __init__(self, sources: Sequence[ArraySource], seeds: Sequence[int], batch_size: int | None) -> None:
        sizes = {source.sizes for source in sources}
        if len(sizes) > 1:
            raise ValueError(
                f"Networks that train at once need domains of the same sizes, got {sorted(sizes)[:3]}. Train them in "
                "groups, or one after the other."
            )
        self.x = torch.stack([source.x for source in sources])
        self.target = torch.stack([source.target for source in sources])
        self.whole = sources[0].sizes
        self.seeds = seeds
        self.sizes = self.whole if batch_size is None else tuple(min(batch_size, n) for n in self.whole)
        self.batched = batch_size is not None
        self.sources = sources
        self.batch_size = batch_size
        self.balanced = sources[0].strata is not None
        self._orders: dict[tuple[int, int], Tensor] = {}

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Return x (members, rows, ...) and targets of a step."""
        if self.balanced:
            return self._balanced(step)
        if not self.batched:
            return self.x, self.target
        parts, start = [], 0
        for domain, (size, whole) in enumerate(zip(self.sizes, self.whole, strict=True)):
            first, last = step * size, (step + 1) * size
            for epoch in range(first // whole, (last - 1) // whole + 1):
                order = self._order(domain, epoch, whole)
                parts.append(start + order[:, max(first - epoch * whole, 0) : last - epoch * whole])
            start += whole
        rows = torch.cat(parts, dim=1)
        member = torch.arange(len(rows))[:, None]
        return self.x[member, rows], self.target[member, rows]

    def _balanced(self, step: int) -> tuple[Tensor, Tensor]:
        members = zip(self.sources, self.seeds, strict=True)
        drawn = [source.batch_rows(self.batch_size, seed, step) for source, seed in members]
        rows = torch.stack([rows for rows, _ in drawn])  # type: ignore[misc]
        member = torch.arange(len(rows))[:, None]
        return self.x[member, rows], self.target[member, rows]

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
    l2: float = 0.0,
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
        ``loss(network, parameters, x, target, sizes, settings)`` for one member; it calls the network by
        `torch.func.functional_call`.
    settings : mapping of str to Tensor of shape (members, ...)
        What differs between members, handed to `loss` one member at a time.
    steps, learning_rate, batch_size, cosine, l2
        As in `sfboost.torch.trainer.Stage` and `Trainer`.
    trained : sequence of str, optional
        Names of the parameters to train; all by default.

    Returns
    -------
    dict of str to ndarray of shape (steps, members)
        The parts of the loss.

    Examples
    --------
    >>> import numpy as np, torch
    >>> x, y, d = torch.randn(8, 2), np.arange(8) % 2, np.arange(8) // 4
    >>> nets = [ACTIRNetwork(torch.nn.Linear(2, 4), width=4, n_features=3, n_classes=2, n_domains=2) for _ in "ab"]
    >>> settings = {"proxy": torch.ones(2), "gradient": torch.ones(2)}
    >>> history = train_many(nets, [ArraySource(x, y, d, 2, 2)] * 2, [0, 1], actir_loss, settings,
    ...                      steps=3, learning_rate=0.01)
    >>> history["total"].shape
    (3, 2)
    """
    rows = _StackedRows(sources, seeds, batch_size)
    stacked, _ = stack_module_state(list(networks))  # type: ignore[arg-type]
    names = list(stacked) if trained is None else list(trained)
    parameters = {name: stacked[name].detach().clone().requires_grad_(name in names) for name in stacked}
    base = networks[0]

    def member(
        own: dict[str, Tensor], x: Tensor, target: Tensor, other: dict[str, Tensor]
    ) -> tuple[Tensor, ...]:
        return tuple(loss(base, own, x, target, rows.sizes, other))

    together = vmap(member, randomness="error")
    optimizer = torch.optim.Adam([parameters[name] for name in names], lr=learning_rate, weight_decay=l2)
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


def actir_loss(
    network: nn.Module,
    parameters: dict[str, Tensor],
    x: Tensor,
    target: Tensor,
    sizes: Sequence[int],
    settings: dict[str, Tensor],
) -> LossParts:
    """ACTIR's objective for one member; settings ``proxy`` (λ) and ``gradient`` (λ₂).

    Examples
    --------
    >>> import torch
    >>> net = ACTIRNetwork(torch.nn.Linear(2, 4), width=4, n_features=3, n_classes=2, n_domains=1)
    >>> weights = {"proxy": torch.tensor(1.0), "gradient": torch.tensor(1.0)}
    >>> parts = actir_loss(net, dict(net.named_parameters()), torch.zeros(2, 2), torch.eye(2), (2,), weights)
    >>> parts.total.ndim
    0
    """
    features: Tensor = functional_call(network, parameters, (x,))
    objective = ACTIRObjective(settings["proxy"], settings["gradient"])
    return objective(features, parameters["eta"], target, sizes)


def learn_many(
    networks: Sequence[SplitNetwork],
    sources: Sequence[ArraySource],
    plans: Sequence[Plan],
    seeds: Sequence[int],
    *,
    batch_size: int | None = None,
) -> tuple[History, np.ndarray]:
    """Train many `SplitNetwork` at once, each by its own plan; the counterpart of `Learner.learn`.

    Parameters
    ----------
    networks, sources, plans, seeds : sequences of the same length
        One entry per member. Plans may differ in ``stability_weight`` and ``independence_weight`` only.
    batch_size : int, optional
        Rows per domain and step.

    Returns
    -------
    history : dict of str to ndarray of shape (steps, members)
        The stages one after the other (restarts of single members are not in it).
    restarts : ndarray of shape (members,)
        How often each member's unstable part was started again.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from sfboost.torch.learning import build_network
    >>> from sfboost.torch.networks import MLP
    >>> x, y, d = torch.randn(8, 2), np.arange(8) % 2, np.arange(8) // 4
    >>> nets = [build_network(lambda: MLP(2, (4,)), x, split="shared", n_classes=2, n_domains=2, n_stable=1,
    ...                       n_unstable=1, seed=s) for s in (0, 1)]
    >>> plans = [Plan(split="shared", steps=3, stability_weight=w) for w in (1.0, 10.0)]
    >>> history, restarts = learn_many(nets, [ArraySource(x, y, d, 2, 2)] * 2, plans, [0, 1])
    >>> history["joint"].shape
    (3, 2)
    """
    plan = _common_plan(plans)
    many = _Many(networks, sources, plans, seeds, batch_size)
    histories = []
    if plan.split == "shared":
        names = [name for name, _ in networks[0].named_parameters()]
        histories += many.two_stages(plan, "both", names)
        restarts = np.zeros(len(networks), dtype=int)
    else:
        if plan.balance:
            histories.append(many.balance(plan))
        histories += many.two_stages(plan, "stable", _names(networks[0], networks[0].stable_parameters()))
        for source in many.sources:
            source.balance(None)
        last, restarts = many.unstable(plan)
        histories += last
    return {name: np.concatenate([h[name] for h in histories]) for name in LossParts._fields}, restarts


def _common_plan(plans: Sequence[Plan]) -> Plan:
    def common(plan: Plan) -> Plan:
        return replace(plan, stability_weight=1.0, independence_weight=1.0)

    if any(common(plan) != common(plans[0]) for plan in plans):
        raise ValueError(
            "Plans that train at once may differ in stability_weight and independence_weight only."
        )
    plan = plans[0]
    for kind, value, known in (
        ("stability penalty", plan.stability, BATCHED_STABILITY),
        ("independence penalty", plan.independence, BATCHED_INDEPENDENCE),
    ):
        if value not in known:
            raise ValueError(
                f"The {kind} {value!r} cannot train many at once; these can: {', '.join(known)}."
            )
    return plan


def _names(network: nn.Module, parameters: Sequence[nn.Parameter]) -> list[str]:
    wanted = {id(p) for p in parameters}
    return [name for name, p in network.named_parameters() if id(p) in wanted]


class _Many:
    """The stages of `Learner`, for all members."""

    def __init__(
        self,
        networks: Sequence[SplitNetwork],
        sources: Sequence[ArraySource],
        plans: Sequence[Plan],
        seeds: Sequence[int],
        batch_size: int | None,
    ) -> None:
        self.networks, self.plans, self.seeds = networks, plans, seeds
        # Copies that share the rows: balancing is each member's own.
        self.sources = [copy.copy(source) for source in sources]
        self.batch_size = batch_size

    def two_stages(self, plan: Plan, risks: str, names: Sequence[str]) -> list[History]:
        everyone = range(len(self.networks))
        stages = []
        if plan.pretrain_steps:
            stages.append(self._train(everyone, plan, risks, names, plan.pretrain_steps, penalties=False))
        stages.append(self._train(everyone, plan, risks, names, plan.steps, penalties=True))
        return stages

    def balance(self, plan: Plan) -> History:
        """Let each member's first guess Û balance its rows; see `Learner`."""
        states = [copy.deepcopy(network.state_dict()) for network in self.networks]
        names = _names(self.networks[0], self.networks[0].unstable_parameters())
        everyone = range(len(self.networks))
        history = self._train(everyone, plan, "guess", names, plan.unstable_steps, penalties=False)
        for network, source, state in zip(self.networks, self.sources, states, strict=True):
            source.balance(guess_classes(network, source))
            network.load_state_dict(state)
        return history

    def unstable(self, plan: Plan) -> tuple[list[History], np.ndarray]:
        """Train Φ_U of all, then again those whose joint risk did not fall."""
        restarts = np.zeros(len(self.networks), dtype=int)
        if not plan.unstable_steps:
            return [], restarts
        names = _names(self.networks[0], self.networks[0].unstable_parameters())
        best: dict[int, tuple[float, dict[str, Tensor]]] = {}
        todo = list(range(len(self.networks)))
        first: list[History] = []
        for attempt in range(plan.max_restarts + 1):
            if attempt:
                for i in todo:
                    reset_unstable(self.networks[i], restart_seed(self.seeds[i], attempt))
                    restarts[i] = attempt
            history = self._train(todo, plan, "joint", names, plan.unstable_steps, penalties=True)
            first = first or [history]
            for k, i in enumerate(todo):
                joint = float(history["joint"][-1, k])
                if i not in best or joint < best[i][0]:
                    best[i] = (joint, {n: v.clone() for n, v in self.networks[i].state_dict().items()})
            gained = history["joint"][-1] <= (1.0 - plan.min_gain) * self._stable_risks(todo)
            todo = [i for k, i in enumerate(todo) if not gained[k]]
            if not todo:
                break
        for i, (_, state) in best.items():
            self.networks[i].load_state_dict(state)
        return first, restarts

    def _train(
        self,
        members: Sequence[int],
        plan: Plan,
        risks: str,
        names: Sequence[str],
        steps: int,
        *,
        penalties: bool,
    ) -> History:
        stability = make_stability_penalty(plan.stability) if penalties else NoPenalty()
        independence = make_independence_penalty(plan.independence) if penalties else NoPenalty()
        template = Objective(
            torch.empty(0),
            stability,
            independence,
            risks="stable" if risks == "guess" else risks,
            gamma=plan.gamma if risks == "both" else None,
            detach_stable=plan.detach_stable,
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
                stability_weight=settings["stability"],
                independence_weight=settings["independence"],
            )
            return objective(by_domain(outputs, target, sizes))

        joint = risks in ("joint", "guess")
        rate = plan.unstable_learning_rate if joint and plan.unstable_learning_rate else plan.learning_rate
        return train_many(
            [self.networks[i] for i in members],
            [self.sources[i] for i in members],
            [self.seeds[i] for i in members],
            loss,
            self._settings(members, penalties=penalties),
            steps=steps,
            learning_rate=rate,
            trained=names,
            batch_size=self.batch_size,
            cosine=plan.cosine and penalties and not joint,
            l2=plan.l2,
        )

    def _settings(self, members: Sequence[int], *, penalties: bool) -> dict[str, Tensor]:
        like = self.sources[0].target
        weights = [self.plans[i] for i in members]
        stability = [p.stability_weight if penalties else 1.0 for p in weights]
        independence = [p.independence_weight if penalties else 0.0 for p in weights]
        return {
            "log_prior": torch.stack([self.sources[i].log_prior() for i in members]).to(like),
            "stability": torch.tensor(stability, dtype=like.dtype),
            "independence": torch.tensor(independence, dtype=like.dtype),
        }

    def _stable_risks(self, members: Sequence[int]) -> np.ndarray:
        risks = []
        for i in members:
            source, network = self.sources[i], self.networks[i]
            with torch.no_grad():
                domains = by_domain(network(source.x, source.sizes), source.target, source.sizes)
                risks.append(np.mean([domain.risk.item() for domain in domains]))
        return np.array(risks)
