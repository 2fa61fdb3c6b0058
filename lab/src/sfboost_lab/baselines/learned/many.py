"""One trainer on many seeds at once: small networks of one shape, trained as a stack."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from sfboost.torch.learning import few_threads
from sfboost.torch.objective import LossParts, NetworkObjective, NoPenalty, cut_by_domain
from sfboost.torch.rows import ArraySource
from sfboost.torch.split_network import SplitNetwork, seed_of
from sfboost_lab.baselines.contract import LabelledRows
from sfboost_lab.baselines.learned.actir import ACTIR
from sfboost_lab.baselines.learned.generalisation import DomainGeneralisation
from sfboost_lab.baselines.learned.network import NetworkPredictor, NetworkProblem, predictor_of
from sfboost_lab.baselines.learned.penalties import PENALTIES
from sfboost_lab.baselines.learned.stacking import actir_loss, require_stackable, train_many


def fit_many(
    trainer: DomainGeneralisation | ACTIR, trains: Sequence[LabelledRows], seeds: Sequence[int]
) -> list[NetworkPredictor]:
    """Train one predictor per seed, all at once; each ends where `trainer.fit` would, up to rounding.

    Parameters
    ----------
    trainer : trainer of a network without dropout
        ACTIR, or domain generalisation with a penalty of `stacking.STACKABLE`.
    trains : sequence of LabelledRows
        Each member's rows; domains of the same sizes.
    seeds : sequence of int

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
    with few_threads(True):
        if isinstance(trainer, ACTIR):
            return _fit_actir(trainer, trains, seeds)
        return _fit_generalisation(trainer, trains, seeds)


def _sources(sources: Sequence[object]) -> list[ArraySource]:
    assert all(isinstance(source, ArraySource) for source in sources)
    return list(sources)  # type: ignore[arg-type]


def _fit_actir(
    trainer: ACTIR, trains: Sequence[LabelledRows], seeds: Sequence[int]
) -> list[NetworkPredictor]:
    problems = [trainer.pose(train, seed) for train, seed in zip(trains, seeds, strict=True)]
    like = torch.ones(len(problems), dtype=next(problems[0].network.parameters()).dtype)
    train_many(
        [problem.network for problem in problems],
        _sources([problem.source for problem in problems]),
        [seed_of(seed, 2) for seed in seeds],
        actir_loss,
        {"proxy": trainer.proxy_weight * like, "gradient": trainer.gradient_weight * like},
        steps=trainer.steps,
        learning_rate=trainer.learning_rate,
        batch_size=trainer.batch_size,
        weight_decay=trainer.l2,
    )
    return [trainer.predictor_of(problem) for problem in problems]


class _OneHead(nn.Module):
    """The stable part of a split network, called as a whole: features and logits."""

    def __init__(self, network: SplitNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.network.stable_features(x)
        return features, self.network.stable_logits(features)


def _fit_generalisation(
    trainer: DomainGeneralisation, trains: Sequence[LabelledRows], seeds: Sequence[int]
) -> list[NetworkPredictor]:
    require_stackable(trainer.title, trainer.penalty(), PENALTIES)
    problems = [trainer.pose(train, seed) for train, seed in zip(trains, seeds, strict=True)]
    for stage, penalised, steps in ((2, False, trainer.pretrain_steps), (3, True, trainer.steps)):
        _stage(trainer, problems, [seed_of(seed, stage) for seed in seeds], steps, penalised=penalised)
    return [predictor_of(problem) for problem in problems]


def _stage(
    trainer: DomainGeneralisation,
    problems: Sequence[NetworkProblem],
    seeds: Sequence[int],
    steps: int,
    *,
    penalised: bool,
) -> None:
    nothing = NoPenalty()
    objective = NetworkObjective(
        torch.empty(0),
        trainer.penalty() if penalised else nothing,
        nothing,
        penalty_weight=trainer.weight if penalised else 1.0,
        risks="stable",
        rescale=trainer.rescale,
    )

    def loss(
        network: nn.Module,
        parameters: dict[str, Tensor],
        x: Tensor,
        target: Tensor,
        sizes: Sequence[int],
        settings: dict[str, Tensor],
    ) -> LossParts:
        features, logits = functional_call(network, parameters, (x,))
        return objective(cut_by_domain(sizes, features, logits, target))

    networks = [_OneHead(problem.network) for problem in problems]
    stable = {id(p) for p in problems[0].network.stable_parameters()}
    train_many(
        networks,
        _sources([problem.source for problem in problems]),
        seeds,
        loss,
        {"member": torch.arange(len(problems))},
        steps=steps,
        learning_rate=trainer.learning_rate,
        trained=[name for name, p in networks[0].named_parameters() if id(p) in stable],
        batch_size=trainer.batch_size,
        cosine=trainer.cosine and penalised,
        weight_decay=trainer.l2,
    )
