"""From a plan to trained features: the paper's shared split, and stable net first, unstable net second.

The paper splits the output of one network (``split="shared"``) and notes that Φ_S and Φ_U could be learned apart.
``split="separate"`` does that: f_S by risk and stability penalty alone; then, with f_S frozen, a narrow Φ_U that is
trained briefly on the joint risk. Some narrow networks start dead and never lower the joint risk, so the second stage
is checked and started again (`docs/decisions` has the measurements behind this).
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import torch
from sfboost.torch.batches import ArraySource, Batch, Source
from sfboost.torch.independence import make_independence_penalty
from sfboost.torch.networks import MLP
from sfboost.torch.objective import LossParts, Objective
from sfboost.torch.outputs import DomainOutput
from sfboost.torch.penalties import NoPenalty, make_stability_penalty
from sfboost.torch.split_network import Outputs, SplitNetwork, by_domain
from sfboost.torch.trainer import Loss, Stage, Trainer
from torch import Tensor, nn

_CHUNK = 8192
_FUSED_FROM = 2**20


@dataclass(frozen=True)
class Plan:
    """How to train; the fields are those of `SFBClassifier`."""

    split: str = "separate"
    stability: str | nn.Module = "irm"
    stability_weight: float = 100.0
    independence: str | nn.Module = "proxy"
    independence_weight: float = 1.0
    gamma: float | None = None
    detach_stable: bool = False
    rescale: bool = True
    pretrain_steps: int = 0
    steps: int = 400
    learning_rate: float = 1e-3
    cosine: bool = False
    l2: float = 0.0
    unstable_steps: int = 200
    unstable_learning_rate: float | None = None
    max_restarts: int = 4
    min_gain: float = 0.02
    balance: bool = False


def seed_of(*parts: int) -> int:
    """Return a seed for a part of a run; different parts give unrelated ones.

    Examples
    --------
    >>> seed_of(0, 1) != seed_of(0, 2)
    True
    """
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))


def restart_seed(seed: int, attempt: int) -> int:
    """Return the seed of the unstable part's new weights at a restart.

    Examples
    --------
    >>> restart_seed(0, 1) != restart_seed(0, 2)
    True
    """
    return seed_of(seed, 1, attempt)


def reset_unstable(network: SplitNetwork, seed: int) -> None:
    """Draw the weights of Φ_U and of its heads anew, in place.

    Examples
    --------
    >>> import torch
    >>> net = SplitNetwork(torch.nn.Linear(2, 4), n_features=4, n_classes=2, n_domains=1, n_unstable=1,
    ...                    unstable_trunk=torch.nn.Linear(2, 4))
    >>> reset_unstable(net, 7)
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for module in (network.unstable_trunk, network.unstable_projection):
            # Children first: a network that has its own rule overrules that of its layers.
            for layer in reversed(list(module.modules())) if module is not None else ():
                if hasattr(layer, "reset_parameters"):
                    layer.reset_parameters()
        network.reset_unstable_heads()


def build_network(
    make_trunk: Callable[[], nn.Module],
    row: Tensor,
    *,
    split: str,
    n_classes: int,
    n_domains: int,
    n_stable: int | None,
    n_unstable: int | None,
    seed: int,
) -> SplitNetwork:
    """Build a `SplitNetwork` with weights that depend on the seed alone.

    Parameters
    ----------
    make_trunk : callable
        Returns a new trunk.
    row : Tensor
        Two rows or more of X, to see what the trunk makes of them.
    split : {"shared", "separate"}
        One trunk or two.
    n_classes, n_domains, n_stable, n_unstable : int
        See `SplitNetwork`.
    seed : int
        Of the initial weights.

    Returns
    -------
    SplitNetwork

    Examples
    --------
    >>> import torch
    >>> net = build_network(lambda: torch.nn.Linear(2, 8), torch.zeros(2, 2), split="separate", n_classes=2,
    ...                     n_domains=2, n_stable=None, n_unstable=1, seed=0)
    >>> net.n_stable, net.n_unstable
    (8, 1)
    """
    devices = [row.device.index or 0] if row.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        trunk = make_trunk()
        network = SplitNetwork(
            trunk,
            n_features=_trunk_width(trunk, row),
            n_classes=n_classes,
            n_domains=n_domains,
            n_stable=n_stable,
            n_unstable=n_unstable,
            unstable_trunk=make_trunk() if split == "separate" else None,
        )
    return network.to(row.device, row.dtype)


def _trunk_width(trunk: nn.Module, row: Tensor) -> int:
    probe = copy.deepcopy(trunk).to(row.device, row.dtype).eval()
    try:
        with torch.no_grad():
            out = probe(row)
    except RuntimeError as error:
        raise ValueError(
            f"The network does not take rows of shape {tuple(row.shape[1:])}: {error}. "
            "Pass a network whose input fits X, or reshape X."
        ) from error
    if not isinstance(out, Tensor) or out.ndim != 2 or len(out) != len(row):
        got = f"a tensor of shape {tuple(out.shape)}" if isinstance(out, Tensor) else type(out).__name__
        raise ValueError(
            f"The network must map {len(row)} rows to a tensor of shape ({len(row)}, width), got {got}. "
            "Flatten or pool its output."
        )
    return int(out.shape[1])


def guess_classes(network: SplitNetwork, source: Source) -> np.ndarray:
    """Return Û of every row: the class that the unstable head of its own domain finds most likely.

    Examples
    --------
    >>> import torch
    >>> net = SplitNetwork(torch.nn.Linear(1, 2), n_features=2, n_classes=2, n_domains=1)
    >>> guess_classes(net, ArraySource(torch.zeros(3, 1), np.zeros(3, int), np.zeros(3, int), 2, 1)).shape
    (3,)
    """
    guess = np.zeros(len(source.labels), dtype=int)
    network.eval()
    heads = zip(network.unstable_weight, network.unstable_bias, strict=True)
    with torch.no_grad():
        for rows, (weight, bias) in zip(source.domain_rows, heads, strict=True):
            for part in np.array_split(rows, max(1, len(rows) // _CHUNK)):
                logits = network.unstable_features(source.rows(part)) @ weight.T + bias
                guess[part] = network.all_classes(logits).argmax(1).cpu().numpy()
    return guess


class Learner:
    """Trains a `SplitNetwork` by a plan and keeps the history.

    Parameters
    ----------
    network : SplitNetwork
        Trained in place.
    source : Source
        The labelled rows.
    plan : Plan
        How.
    batch_size : int, optional
        Rows per domain and step.
    seed : int
        Of batches, dropout and restarts.
    trainer_options : dict
        Passed on to `Trainer`: fingerprint, verbose, autocast, checkpoint_every, monitor_every, patience.
    checkpoint : path, optional
        Folder for checkpoints.
    monitor : callable, optional
        Loss on the early-stopping domain.

    Examples
    --------
    >>> import numpy as np, torch
    >>> x, y, d = torch.randn(8, 2), np.arange(8) % 2, np.arange(8) // 4
    >>> net = build_network(lambda: torch.nn.Linear(2, 4), x, split="shared", n_classes=2, n_domains=2,
    ...                     n_stable=None, n_unstable=None, seed=0)
    >>> learner = Learner(net, ArraySource(x, y, d, 2, 2), Plan(split="shared", steps=2), seed=0)
    >>> learner.learn()
    >>> len(learner.history)
    2
    """

    def __init__(
        self,
        network: SplitNetwork,
        source: Source,
        plan: Plan,
        *,
        seed: int,
        batch_size: int | None = None,
        checkpoint: Path | None = None,
        monitor: Callable[[], float] | None = None,
        trainer_options: dict[str, Any] | None = None,
    ) -> None:
        self.network = network
        self.source = source
        self.plan = plan
        self.seed = seed
        self.batch_size = batch_size
        self.checkpoint = checkpoint
        self.monitor = monitor
        self.options = trainer_options or {}
        self.history: list[dict[str, Any]] = []
        self.restarts = 0
        # A copy: a penalty with buffers must not remember a former fit.
        self.stability = copy.deepcopy(make_stability_penalty(plan.stability)).train()
        self.independence = copy.deepcopy(make_independence_penalty(plan.independence)).train()

    def learn(self) -> None:
        """Run every stage of the plan."""
        self._choose_path()
        if self.plan.split == "shared":
            self._train("shared", self._shared_stages())
            return
        if self.plan.balance:
            self._balance()
        self._train("stable", self._stable_stages())
        self.source.balance(None)
        if self.plan.unstable_steps:
            self._learn_unstable()

    def _choose_path(self) -> None:
        rows = sum(self.source.sizes) if self.batch_size is None else self.batch_size * len(self.source.sizes)
        plain = self.options.get("autocast", False) or getattr(self.stability, "second_order", False)
        for module in self.network.modules():
            if isinstance(module, MLP):
                module.fused = not plain and rows * module.n_features >= _FUSED_FROM

    def _objective(self, risks: str, *, penalties: bool) -> Objective:
        parameter = next(self.network.parameters())
        return Objective(
            log_prior=self.source.log_prior().to(parameter),
            stability=self.stability if penalties else NoPenalty(),
            independence=self.independence if penalties else NoPenalty(),
            stability_weight=self.plan.stability_weight if penalties else 1.0,
            independence_weight=self.plan.independence_weight if penalties else 0.0,
            risks=risks,
            gamma=self.plan.gamma if risks == "both" else None,
            detach_stable=self.plan.detach_stable,
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
                    "pretrain", loss(False), parameters, plan.pretrain_steps, plan.learning_rate, l2=plan.l2
                )
            )
        stages.append(
            Stage(name, loss(True), parameters, plan.steps, plan.learning_rate, plan.cosine, plan.l2)
        )
        return stages

    def _shared_loss(self, penalties: bool) -> Loss:
        objective = self._objective("both", penalties=penalties)
        stable_parameters = self.network.stable_parameters()

        def loss(batch: Batch) -> LossParts:
            outputs = self.network(batch.x, batch.sizes)
            outputs = Outputs(*(part.to(batch.target.dtype) for part in outputs))
            return objective(by_domain(outputs, batch.target, batch.sizes), stable_parameters)

        return loss

    def _balance(self) -> None:
        """Train Φ_U briefly by empirical risk; its guess Û then balances the rows for the stable stage."""
        plan, start = self.plan, {k: v.clone() for k, v in self.network.state_dict().items()}
        parameters = self.network.unstable_parameters()
        rate = plan.unstable_learning_rate or plan.learning_rate
        stage = Stage("guess", self._guess_loss(), parameters, plan.unstable_steps, rate, l2=plan.l2)
        self._train("guess", [stage], early_stopping=False)
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
        """Train Φ_U, look whether it lowers the joint risk, start again if not."""
        plan = self.plan
        fresh = {k: v.clone() for k, v in self.network.state_dict().items()}
        best: tuple[float, dict[str, Tensor], list[dict[str, Any]]] | None = None
        for attempt in range(plan.max_restarts + 1):
            if attempt:
                self.network.load_state_dict(fresh)
                reset_unstable(self.network, restart_seed(self.seed, attempt))
            rate = plan.unstable_learning_rate or plan.learning_rate
            parameters = self.network.unstable_parameters()
            stage = Stage(
                "unstable", self._unstable_loss(), parameters, plan.unstable_steps, rate, l2=plan.l2
            )
            history = self._train(f"unstable-{attempt}", [stage], early_stopping=False)
            joint, stable = history[-1]["joint"], self._stable_risk()
            state = {k: v.clone() for k, v in self.network.state_dict().items()}
            if best is None or joint < best[0]:
                best = (joint, state, history)
            self.restarts = attempt
            if joint <= (1.0 - plan.min_gain) * stable:
                break
        else:
            warnings.warn(
                f"In {plan.max_restarts + 1} starts the unstable features never lowered the risk by "
                f"{100 * plan.min_gain:g} % (stable {stable:.4g}, best joint {best[0]:.4g}): there is little to gain "
                "from adaptation. Train longer (unstable_steps) or wider (n_unstable) if there should be.",
                UserWarning,
                stacklevel=2,
            )
        assert best is not None
        self.network.load_state_dict(best[1])

    def _stable_risk(self) -> float:
        objective = self._objective("stable", penalties=False)
        self.network.eval()
        values = []
        with torch.no_grad():
            frozen = self._frozen_stable()
            for step in range(1 if self.batch_size is None else 8):
                batch = self.source.batch(self.batch_size, self.seed, step)
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
            batch_size=self.batch_size,
            seed=self.seed,
            state=self.stability,
            checkpoint=None if self.checkpoint is None else self.checkpoint / f"{name}.safetensors",
            monitor=self.monitor if early_stopping else None,
            **self.options,
        )
        trainer.run(stages)
        self.history.extend(trainer.history)
        return trainer.history
