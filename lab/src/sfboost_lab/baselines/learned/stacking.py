"""Training networks of one shape together: stacked parameters and `vmap` (`torch.func`).

A network of 8 units spends its time in Python and in starting kernels. Stacking does that once for all
members. Each member keeps its own rows, order of batches, initial weights and penalty weights, and ends where
it would have ended alone (up to rounding).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from sfboost.torch.objective import LossParts
from sfboost.torch.rows import ArraySource, epoch_order
from sfboost_lab.baselines.learned.actir_network import ACTIRObjective
from sfboost_lab.baselines.learned.penalties import STACKABLE

MemberLoss = Callable[
    [nn.Module, dict[str, Tensor], Tensor, Tensor, Sequence[int], dict[str, Tensor]], LossParts
]
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
                "Networks that train at once need domains of the same sizes, got "
                f"{sorted(sizes)[:3]}. Train them in "
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
        self.reshuffle = reshuffle
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
                order = self._order(domain, epoch if self.reshuffle else 0, whole)
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
        ``loss(network, parameters, x, target, sizes, settings)`` for one member; it calls the network by
        `torch.func.functional_call`.
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
    >>> from sfboost_lab.baselines.learned.actir_network import ACTIRNetwork
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
        return tuple(loss(base, own, x, target, rows.sizes, other))

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
    >>> from sfboost_lab.baselines.learned.actir_network import ACTIRNetwork
    >>> net = ACTIRNetwork(torch.nn.Linear(2, 4), width=4, n_features=3, n_classes=2, n_domains=1)
    >>> weights = {"proxy": torch.tensor(1.0), "gradient": torch.tensor(1.0)}
    >>> parts = actir_loss(net, dict(net.named_parameters()), torch.zeros(2, 2), torch.eye(2), (2,), weights)
    >>> parts.total.ndim
    0
    """
    features: Tensor = functional_call(network, parameters, (x,))
    objective = ACTIRObjective(settings["proxy"], settings["gradient"])
    return objective(features, parameters["eta"], target, sizes)
