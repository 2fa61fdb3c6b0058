"""IRM and ACTIR on synthetic data as the code behind the published table trains them (needs the torch extra).

Φ has three outputs, the first two of which are the logits; batches of 128 rows come in the same order in
every pass; nothing is annealed. IRM is penalised by the gradient in the whole matrix from Φ to the logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from sfboost.torch.learning import few_threads
from sfboost.torch.objective import LossParts, NetworkObjective, NoPenalty, cut_by_domain
from sfboost.torch.rows import ArraySource
from sfboost.torch.split_network import seed_of
from sfboost_lab.baselines.contract import LabelledRows
from sfboost_lab.baselines.learned.actir import ACTIR
from sfboost_lab.baselines.learned.network import NetworkPredictor
from sfboost_lab.baselines.learned.penalties import IRMMatrix
from sfboost_lab.baselines.learned.stacking import actir_loss, train_many


def fit_in_order(
    name: str, hyper: Mapping[str, Any], trains: Sequence[LabelledRows], seeds: Sequence[int]
) -> list[NetworkPredictor]:
    """Train one network per seed, all at once.

    Parameters
    ----------
    name : {"irm", "actir"}
    hyper : mapping
        Arguments of `ACTIR`, and λ of IRM as ``weight``.
    trains : sequence of LabelledRows
        Each member's rows; domains of the same sizes.
    seeds : sequence of int

    Examples
    --------
    >>> import numpy as np
    >>> rows = LabelledRows(np.array([[-1.0], [1.0]] * 4), np.array([0, 1] * 4), np.repeat([0, 1], 4))
    >>> (fitted,) = fit_in_order("irm", {"steps": 50, "weight": 1.0}, [rows], [0])
    >>> fitted.predict(np.array([[1.0]]))
    array([1])
    """
    own = {field: value for field, value in hyper.items() if field in ACTIR.__dataclass_fields__}
    trainer = replace(ACTIR(), **own)
    problems = [trainer.pose(train, seed) for train, seed in zip(trains, seeds, strict=True)]
    sources = [problem.source for problem in problems if isinstance(problem.source, ArraySource)]
    trained = [parameter for parameter, _ in problems[0].network.named_parameters()]
    if name == "irm":
        trained.remove("eta")
        loss, told = irm_loss, {"weight": hyper["weight"]}
    else:
        loss, told = actir_loss, {"proxy": trainer.proxy_weight, "gradient": trainer.gradient_weight}
    with few_threads(True):
        train_many(
            [problem.network for problem in problems],
            sources,
            [seed_of(seed, 2) for seed in seeds],
            loss,
            {key: torch.full((len(problems),), float(value)) for key, value in told.items()},
            steps=trainer.steps,
            learning_rate=trainer.learning_rate,
            trained=trained,
            batch_size=trainer.batch_size,
            reshuffle=False,
        )
    return [trainer.predictor_of(problem) for problem in problems]


def irm_loss(
    network: nn.Module,
    parameters: dict[str, Tensor],
    x: Tensor,
    target: Tensor,
    sizes: Sequence[int],
    settings: dict[str, Tensor],
) -> LossParts:
    """Risk + λ · mean square of the gradient in the matrix that maps Φ to the logits, which is [I; 0]."""
    features: Tensor = functional_call(network, parameters, (x,))
    logits = features[:, : target.shape[1]]
    objective = NetworkObjective(
        torch.empty(0), IRMMatrix(), NoPenalty(), penalty_weight=settings["weight"], risks="stable"
    )
    return objective(cut_by_domain(sizes, features, logits, target))
