"""Domain generalisation: one network, one head, the mean risk and a penalty (needs the torch extra).

Hyper-parameters of the published settings are `presets`: ColoredMNIST as in QRM's code (400 steps of
empirical risk, then a fresh Adam under the penalty with a falling rate), the synthetic families with ACTIR's
network and rate, PACS on frozen features. What differs from that code: QRM divides the EQRM loss by a
constant, to which Adam is blind; it draws as many rows as there are, with replacement, where we take half of
them without (a mean over the batch has the same variance, at half the cost). ACTIR takes 800 steps of 128
rows, where the noise of the squared gradient drives IRM to one half everywhere: here batches are full.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sfboost.torch.learning import Learner
from sfboost.torch.objective import NoPenalty
from sfboost.torch.plan import Goal, Plan
from sfboost.torch.rows import number_type
from sfboost.torch.split_network import SplitNetwork, seed_of, trunk_width
from sfboost_lab.baselines.contract import SYNTHETIC_FAMILIES, LabelledRows, Method
from sfboost_lab.baselines.learned.network import (
    NetworkPredictor,
    NetworkProblem,
    head_of_layer,
    make_trunk,
    pad_dropout,
    read_training,
)
from sfboost_lab.baselines.learned.penalties import EQRM, PENALTIES, GroupDRO, make

_COLORED_MNIST = {
    "network": "mlp3",
    "dropout": 0.2,
    "learning_rate": 1e-4,
    "pretrain_steps": 400,
    "steps": 200,
    "cosine": True,
    "batch_size": 12_500,
}
_SYNTHETIC = {"network": "small", "learning_rate": 1e-2, "pretrain_steps": 100, "steps": 400}
_PACS = {"network": "linear", "learning_rate": 1e-3, "steps": 500, "batch_size": 128}


def published(
    colored_mnist: Mapping[str, Any] = {},
    synthetic: Mapping[str, Any] = {},
    pacs: Mapping[str, Any] = {},
    **families: Mapping[str, Any],
) -> dict[str, dict[str, Any]]:
    """Return the presets of a method: what all methods share in a setting, and what is its own.

    Examples
    --------
    >>> published(colored_mnist={"steps": 600})["colored_mnist"]["steps"]
    600
    """
    unknown = sorted(set(families) - set(SYNTHETIC_FAMILIES))
    if unknown:
        raise ValueError(f"No synthetic family {unknown}: there are {', '.join(SYNTHETIC_FAMILIES)}.")
    made = {name: {**_SYNTHETIC, **synthetic, **families.get(name, {})} for name in SYNTHETIC_FAMILIES}
    return {**made, "colored_mnist": {**_COLORED_MNIST, **colored_mnist}, "pacs": {**_PACS, **pacs}}


@dataclass(frozen=True, eq=False)
class Pretrained:
    """Weights after the steps of empirical risk, which serve every penalty of a seed.

    Attributes
    ----------
    tensors : dict of str to Tensor
        The state of the network.
    recipe : dict
        What they depend on besides the rows; a trainer with another recipe refuses them.
    """

    tensors: dict[str, Tensor]
    recipe: dict[str, Any]


@dataclass(frozen=True)
class DomainGeneralisation(Method):
    """Mean risk over the training domains + `weight` · penalty.

    Parameters
    ----------
    network : str or nn.Module
        A name of `sfboost.torch.networks.NETWORKS` ("linear" for frozen features), or a module that maps a
        batch to (n, width).
    weight : float
        Of the penalty.
    pretrain_steps, steps : int
        Steps without and with the penalty; each stage begins with a fresh Adam.
    learning_rate, l2, cosine : float, float, bool
        Adam's rate and weight decay; whether the rate falls along a cosine in the second stage.
    batch_size : int, optional
        Rows per domain and step; None for all.
    dropout : float
        Of the named networks.
    n_features : int, optional
        Width of a linear layer after the network; None for none.
    rescale : bool
        Divide the loss by the weight where that is above 1.
    precision : {"float32", "float64"}
    """

    network: str | nn.Module = "mlp"
    weight: float = 1.0
    pretrain_steps: int = 0
    steps: int = 400
    learning_rate: float = 1e-3
    l2: float = 0.0
    cosine: bool = False
    batch_size: int | None = None
    dropout: float = 0.0
    n_features: int | None = None
    rescale: bool = True
    precision: str = "float32"

    def penalty(self) -> nn.Module:
        """Return the stability penalty of the trainer's name, new for each fit."""
        return make(PENALTIES, self.name)

    def pretrain(self, train: LabelledRows, *, seed: int = 0) -> Pretrained:
        """Run the steps of empirical risk alone; their result serves every trainer with the same recipe."""
        problem = self.pose(train, seed)
        self._train(problem, NoPenalty(), self.pretrain_steps, seed_of(seed, 2), plain=True)
        return Pretrained(problem.network.state_dict(), self._recipe(seed))  # the network is no one else's

    def fit(
        self,
        train: LabelledRows,
        *,
        validation: LabelledRows | None = None,
        seed: int = 0,
        start: Pretrained | None = None,
    ) -> NetworkPredictor:
        """Train; `start` are weights from `pretrain`, which is otherwise run here with the same result."""
        problem = self.pose(train, seed)
        start = start or self.pretrain(train, seed=seed)
        if start.recipe != self._recipe(seed):
            changed = [k for k, v in self._recipe(seed).items() if start.recipe.get(k) != v]
            raise ValueError(
                f"These weights were pretrained with another {', '.join(changed)}. "
                "Call `pretrain` with this trainer and seed, or leave `start` out."
            )
        problem.network.load_state_dict(start.tensors)
        self._train(problem, self.penalty(), self.steps, seed_of(seed, 3), plain=False)
        return self.finish(self.predictor_of(problem), train)

    def finish(self, trained: NetworkPredictor, train: LabelledRows) -> NetworkPredictor:
        """Return what is made of the trained network."""
        return trained

    def _recipe(self, seed: int) -> dict[str, Any]:
        names = ("network", "pretrain_steps", "learning_rate", "l2", "batch_size", "dropout", "n_features")
        return {**{name: getattr(self, name) for name in names}, "precision": self.precision, "seed": seed}

    def pose(self, train: LabelledRows, seed: int) -> NetworkProblem:
        """Check the rows and build the network; its weights depend on the seed alone."""
        penalised = not isinstance(self.penalty(), NoPenalty)
        rows, classes, source = read_training(
            train, precision=self.precision, batch_size=self.batch_size, penalised=penalised
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(seed, 0))
            trunk = make_trunk(self.network, rows.shape(), self.dropout)
            built = SplitNetwork(
                trunk,
                n_features=trunk_width(trunk, rows.x[:2]),
                n_classes=len(classes),
                n_domains=1,
                n_stable=self.n_features,
                unstable_trunk=nn.Identity(),  # one network, one head: there is no second part
            )
        return NetworkProblem(classes, source, built.to(number_type(self.precision)))

    def _train(
        self, problem: NetworkProblem, penalty: nn.Module, steps: int, seed: int, *, plain: bool
    ) -> None:
        """Train in place, with a fresh Adam: it is the stable stage of SFB alone."""
        if steps == 0:
            return
        plan = Plan(
            rescale=self.rescale,
            steps=steps,
            learning_rate=self.learning_rate,
            cosine=self.cosine and not plain,
            weight_decay=self.l2,
            batch_size=self.batch_size,
            unstable_steps=0,
            balance=False,
            # As published: no second start, whatever comes out.
            max_restarts=0,
            min_gain=-math.inf,
        )
        sizes = problem.source.sizes
        rows = sum(sizes) if self.batch_size is None else self.batch_size * len(sizes)
        pad_dropout(problem.network, rows, second_order=getattr(penalty, "second_order", False))
        weight = 1.0 if plain else self.weight
        goal = Goal(penalty=penalty, penalty_weight=weight, independence="none")
        Learner(problem.network, problem.source, goal, plan, seed=seed).learn()

    def predictor_of(self, problem: NetworkProblem) -> NetworkPredictor:
        """Return the trained network as a predictor."""
        network = problem.network.eval()
        body = nn.Sequential(network.trunk, network.projection)
        return NetworkPredictor(problem.classes, body, head_of_layer(network.stable_head))


@dataclass(frozen=True)
class ERMTrainer(DomainGeneralisation):
    """Empirical risk, each domain with one vote.

    Examples
    --------
    >>> import numpy as np
    >>> rows = LabelledRows(np.array([[-1.0], [1.0]] * 4), np.array([0, 1] * 4), np.repeat([0, 1], 4))
    >>> ERMTrainer(network="small", steps=100, learning_rate=0.1).fit(rows).predict(np.array([[1.0]]))
    array([1])
    """

    name: ClassVar[str] = "erm"
    title: ClassVar[str] = "ERM"
    # QRM's code lets the rate of empirical risk stay as it is.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published({"cosine": False})

    def penalty(self) -> nn.Module:
        """Return none."""
        return NoPenalty()


@dataclass(frozen=True)
class GroupDROTrainer(DomainGeneralisation):
    """GroupDRO: more weight for the domains with the larger risks; `step_size` is η."""

    name: ClassVar[str] = "groupdro"
    title: ClassVar[str] = "GroupDRO"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published({"step_size": 1.0, "steps": 600})

    step_size: float = 0.01

    def penalty(self) -> nn.Module:
        """Return the penalty."""
        return GroupDRO(step_size=self.step_size)


@dataclass(frozen=True)
class IRMTrainer(DomainGeneralisation):
    """IRMv1; `form` is "irm" or "irm-matrix" (close to ACTIR's)."""

    name: ClassVar[str] = "irm"
    title: ClassVar[str] = "IRM"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published(
        {"weight": 1e4}, {"weight": 100.0}, {"weight": 1.0}, three_parts={"weight": 1e4}
    )

    weight: float = 100.0
    form: str = "irm"

    def penalty(self) -> nn.Module:
        """Return the penalty."""
        return make(PENALTIES, self.form)


@dataclass(frozen=True)
class VRExTrainer(DomainGeneralisation):
    """V-REx: the variance of the domain risks."""

    name: ClassVar[str] = "vrex"
    title: ClassVar[str] = "V-REx"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published(
        {"weight": 1e4}, {"weight": 100.0}, {"weight": 10.0}
    )

    weight: float = 10.0


@dataclass(frozen=True)
class EQRMTrainer(DomainGeneralisation):
    """EQRM (QRM): an upper quantile of the domain risks; `alpha`, or `log_tail` = log(1 − α) near one."""

    name: ClassVar[str] = "eqrm"
    title: ClassVar[str] = "EQRM"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published(
        {"log_tail": -1000.0, "alpha": None}, {"log_tail": -1000.0, "alpha": None}
    )

    alpha: float | None = 0.75
    log_tail: float | None = None

    def penalty(self) -> nn.Module:
        """Return the penalty."""
        return EQRM(self.alpha, log_tail=self.log_tail)


@dataclass(frozen=True)
class SDTrainer(DomainGeneralisation):
    """Spectral decoupling: small logits."""

    name: ClassVar[str] = "sd"
    title: ClassVar[str] = "SD"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published({"weight": 10.0, "steps": 600})

    weight: float = 0.1


@dataclass(frozen=True)
class IGATrainer(DomainGeneralisation):
    """IGA: the same gradient of the risk in every domain."""

    name: ClassVar[str] = "iga"
    title: ClassVar[str] = "IGA"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published(
        {"weight": 1e3, "steps": 600, "rescale": False}
    )

    weight: float = 1000.0


@dataclass(frozen=True)
class FishrTrainer(DomainGeneralisation):
    """Fishr: the same variance of the head's gradients in every domain."""

    name: ClassVar[str] = "fishr"
    title: ClassVar[str] = "Fishr"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published({"weight": 91257.0})

    weight: float = 1000.0


@dataclass(frozen=True)
class CLOvETrainer(DomainGeneralisation):
    """CLOvE: calibration in every domain, by MMCE."""

    name: ClassVar[str] = "clove"
    title: ClassVar[str] = "CLOvE"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published({"weight": 1e4}, {"weight": 100.0})

    weight: float = 10.0
