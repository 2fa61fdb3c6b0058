"""ACTIR (Jiang & Veitch, 2022): its own network and objective, as its authors coded them.

Without labels it predicts with its stable logits, the first K features; the adapter "fine-tune" is its step
at test time, which fits the matrix β to labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sfboost.torch.learning import few_threads
from sfboost.torch.objective import LossParts, cross_entropy, within_class
from sfboost.torch.rows import Batch, number_type
from sfboost.torch.split_network import seed_of, trunk_width
from sfboost.torch.trainer import Stage, StageRunner
from sfboost_lab.baselines.contract import LabelledRows, LinearHead, Method
from sfboost_lab.baselines.learned.generalisation import published
from sfboost_lab.baselines.learned.network import NetworkPredictor, NetworkProblem, make_trunk, read_training

_SYNTHETIC = {"steps": 800, "batch_size": 128, "n_features": 3}
_WITHOUT = ("pretrain_steps", "cosine")


def _presets() -> dict[str, dict[str, Any]]:
    made = published(
        {"n_features": 8, "steps": 600},
        {**_SYNTHETIC, "proxy_weight": 9.2367, "gradient_weight": 1.7433},
        {"n_features": 8, "proxy_weight": 1.0, "gradient_weight": 1.0},
        ce_dd={"proxy_weight": 18.874, "gradient_weight": 0.32903},
        multiclass_ac={"n_features": 8},
    )
    return {name: {k: v for k, v in values.items() if k not in _WITHOUT} for name, values in made.items()}


class ACTIRNetwork(nn.Module):
    """Features Φ whose first K coordinates are the stable logits, and one matrix η_e per training domain.

    Parameters
    ----------
    trunk : nn.Module
        Maps a batch to (n, width).
    width : int
        Width of the trunk's output.
    n_features : int
        Features d, at least K.
    n_classes, n_domains : int
        Classes; training domains. η starts at zero.

    Examples
    --------
    >>> import torch
    >>> net = ACTIRNetwork(torch.nn.Linear(2, 8), width=8, n_features=3, n_classes=2, n_domains=2)
    >>> net(torch.zeros(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(
        self, trunk: nn.Module, *, width: int, n_features: int, n_classes: int, n_domains: int
    ) -> None:
        super().__init__()
        if n_features < n_classes:
            raise ValueError(
                f"ACTIR needs at least as many features as classes, got {n_features} and {n_classes}."
            )
        self.trunk = trunk
        self.projection = nn.Linear(width, n_features)
        self.eta = nn.Parameter(torch.zeros(n_domains, n_features, n_classes))

    def forward(self, x: Tensor) -> Tensor:
        """Return Φ(x)."""
        features: Tensor = self.projection(self.trunk(x))
        return features


class ACTIRObjective:
    """The objective: both risks, and how far each η_e is from its own optimum.

    Σ_e γ·CE(f_S + f_U) + (1 − γ)·CE(f_S) + λ₂·mean((∂/∂η_e [CE(f_S + f_U) + λ·proxy])²), averaged over
    domains, where f_S is the first K features and f_U = Φ·η_e uses all of them. The gradient in η_e is
    written out: Φᵀ(p − y)/n + λ·sign(r)·(Φ − E[Φ|Y])ᵀf_S/n, so no second backward pass is needed.

    Parameters
    ----------
    proxy_weight : float or Tensor
        λ.
    gradient_weight : float or Tensor
        λ₂.
    gamma : float
        γ.

    Examples
    --------
    >>> import torch
    >>> features, eta, y = torch.zeros(4, 3), torch.zeros(1, 3, 2), torch.eye(2).repeat(2, 1)
    >>> round(ACTIRObjective(1.0, 1.0)(features, eta, y, (4,)).total.item(), 4)
    0.6931
    """

    def __init__(
        self, proxy_weight: float | Tensor, gradient_weight: float | Tensor, *, gamma: float = 0.9
    ) -> None:
        self.proxy_weight = proxy_weight
        self.gradient_weight = gradient_weight
        self.gamma = gamma

    def __call__(self, features: Tensor, eta: Tensor, target: Tensor, sizes: Sequence[int]) -> LossParts:
        """Return the loss and its parts; `penalty` is that of the gradient."""
        rows = zip(features.split(list(sizes)), target.split(list(sizes)), eta, strict=True)
        parts = []
        for phi, y, eta_e in rows:
            f_stable, f_unstable = phi[:, : y.shape[1]], phi @ eta_e
            residual = (f_stable + f_unstable).softmax(1) - y
            covariance = (f_stable * within_class(f_unstable, y)).mean(0)
            slope = within_class(phi, y).T @ f_stable / len(y)
            gradient = phi.T @ residual / len(y) + self.proxy_weight * covariance.detach().sign() * slope
            parts.append(
                torch.stack(
                    [
                        cross_entropy(f_stable, y),
                        cross_entropy(f_stable + f_unstable, y),
                        gradient.square().mean(),
                        covariance.abs().sum(),
                    ]
                )
            )
        stable, joint, stationarity, proxy = torch.stack(parts).mean(0)
        total = self.gamma * joint + (1 - self.gamma) * stable + self.gradient_weight * stationarity
        return LossParts(total, stable, joint, stationarity, proxy)


@dataclass(frozen=True)
class ACTIR(Method):
    """Features whose first K coordinates are stable logits; each domain's own η_e is kept at its optimum.

    Parameters
    ----------
    network : str or nn.Module
    n_features : int
        d, at least the number of classes.
    proxy_weight, gradient_weight, gamma : float
        λ, λ₂ and γ; the defaults are those of the authors for AC.
    steps, learning_rate, batch_size, dropout, l2, precision
        As in the other trainers.

    Examples
    --------
    >>> import numpy as np
    >>> rows = LabelledRows(np.array([[-1.0], [1.0]] * 4), np.array([0, 1] * 4), np.repeat([0, 1], 4))
    >>> ACTIR(network="small", steps=50).fit(rows).head.coef
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """

    name: ClassVar[str] = "actir"
    title: ClassVar[str] = "ACTIR"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = _presets()

    network: str | nn.Module = "small"
    n_features: int = 3
    proxy_weight: float = 9.2367
    gradient_weight: float = 1.7433
    gamma: float = 0.9
    steps: int = 800
    learning_rate: float = 1e-2
    batch_size: int | None = None
    dropout: float = 0.0
    l2: float = 0.0
    precision: str = "float32"

    def fit(
        self, train: LabelledRows, *, validation: LabelledRows | None = None, seed: int = 0
    ) -> NetworkPredictor:
        """Train Φ and every η_e together."""
        problem = self.pose(train, seed)
        network = problem.network

        def loss(batch: Batch) -> LossParts:
            features = network(batch.x).to(batch.target.dtype)
            return self.objective()(features, network.eta, batch.target, batch.sizes)

        stage = Stage(
            "actir", loss, list(network.parameters()), self.steps, self.learning_rate, weight_decay=self.l2
        )
        trainer = StageRunner(network, problem.source, self.batch_size, seed=seed_of(seed, 2))
        with few_threads(self.network == "small"):
            trainer.run([stage])
        return self.predictor_of(problem)

    def objective(self) -> ACTIRObjective:
        """Return ACTIR's objective with these weights."""
        return ACTIRObjective(self.proxy_weight, self.gradient_weight, gamma=self.gamma)

    def pose(self, train: LabelledRows, seed: int) -> NetworkProblem:
        """Check the rows and build the network; its weights depend on the seed alone."""
        rows, classes, source = read_training(
            train, precision=self.precision, batch_size=self.batch_size, penalised=True
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(seed, 0))
            trunk = make_trunk(self.network, rows.shape(), self.dropout)
            if isinstance(self.network, str):
                _default_weights(trunk)
            network = ACTIRNetwork(
                trunk,
                width=trunk_width(trunk, rows.x[:2]),
                n_features=self.n_features,
                n_classes=len(classes),
                n_domains=len(source.sizes),
            ).to(number_type(self.precision))
        return NetworkProblem(classes, source, network)

    def predictor_of(self, problem: NetworkProblem) -> NetworkPredictor:
        """Return the trained network with its fixed matrix β, the first K features."""
        n_classes = len(problem.classes)
        head = LinearHead(np.eye(n_classes, self.n_features), np.zeros(n_classes))
        return NetworkPredictor(problem.classes, problem.network.eval(), head)


def _default_weights(trunk: nn.Module) -> None:
    """Draw torch's default weights, as the authors do; our named networks begin with Xavier's."""
    for layer in trunk.modules():
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
