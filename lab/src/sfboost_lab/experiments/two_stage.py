"""SFB with the paper's penalties, its parts learned apart: f_S is a baseline, Φ_U is learned beside it.

The paper notes that Φ_S and Φ_U could be learned apart, and then the stable part of Eq. 5.1 is the baseline
of the same penalty: it is trained once and serves both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sfboost.boosting.domains import stable_evidence
from sfboost.calibration import fit_temperature
from sfboost_lab.baselines.contract import LinearHead
from sfboost_lab.experiments.grouped_runs import Session
from sfboost_lab.experiments.measured_domains import RunRows
from sfboost_lab.experiments.measuring import fit_by_contract
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.small_nets import SplitNetworkPredictor, outputs

if TYPE_CHECKING:
    from sfboost.torch.split_network import SplitNetwork
    from sfboost_lab.baselines.learned.network import NetworkPredictor


def beside(stable: Run, *, steps: int, learning_rate: float, batch_size: int) -> Run:
    """Return the run that learns Φ_U beside the f_S of another run.

    Examples
    --------
    >>> irm = Run("colored_mnist", "irm", seed=0, protocol="doc", hyper={"weight": 1e4})
    >>> beside(irm, steps=60, learning_rate=3e-4, batch_size=1250).hyper["stability"]
    'irm'
    """
    hyper = {
        "split": "separate",
        "stability": stable.trainer,
        "stable": dict(stable.hyper),
        "calibration": "ece",
        "unstable_steps": steps,
        "unstable_learning_rate": learning_rate,
        "unstable_batch_size": batch_size,
    }
    return Run(stable.dataset, "sfb-paper", stable.seed, stable.protocol, hyper=hyper, data=stable.data)


def fit_once(run: Run, session: Session, rows: RunRows) -> NetworkPredictor:
    """Train a baseline, or take its weights from the folder: other experiments may have trained it."""
    import torch

    from sfboost_lab.baselines import TRAINERS
    from sfboost_lab.baselines.learned.network import predictor_of

    def train() -> dict[str, Any]:
        made: Any = fit_by_contract(run, session, rows)
        body = {f"body.{name}": value.numpy() for name, value in made.body.state_dict().items()}
        return {**body, "coef": made.head.coef, "intercept": made.head.intercept}

    arrays = session.arrays(["trained", run.training()], train)
    trainer = TRAINERS[run.trainer](**run.hyper)
    predictor = predictor_of(trainer.pose(rows.train, run.training_seed))
    state = {n.removeprefix("body."): torch.from_numpy(v) for n, v in arrays.items() if n.startswith("body.")}
    predictor.body.load_state_dict(state)
    return replace(predictor, head=LinearHead(arrays["coef"], arrays["intercept"]))


def fit_beside(run: Run, session: Session, rows: RunRows) -> SplitNetworkPredictor:
    """Take the trained f_S, learn one unstable feature on the joint risk with f_S frozen, calibrate f_S."""
    import torch

    from sfboost.torch.learning import Learner, unstable_trial
    from sfboost.torch.plan import Goal, Plan
    from sfboost.torch.rows import ArraySource
    from sfboost.torch.split_network import seed_of

    hyper = run.hyper
    of_stable = Run(
        run.dataset, hyper["stability"], run.seed, run.protocol, hyper=hyper["stable"], data=run.data
    )
    stable = session.once(["model", of_stable.training()], lambda: fit_once(of_stable, session, rows))
    train, validation = rows.train, rows.validation or rows.train
    x = torch.tensor(np.asarray(train.X, dtype=np.float32))
    domains, codes = np.unique(train.domain, return_inverse=True)
    network = _network_of(
        stable, x[:2], len(domains), hyper["stable"]["network"], seed_of(run.training_seed, 0)
    )
    plan = Plan(
        unstable_steps=hyper["unstable_steps"],
        unstable_learning_rate=hyper["unstable_learning_rate"],
        batch_size=hyper["unstable_batch_size"],
    )
    goal = Goal(independence="none")
    learner = Learner(
        network,
        ArraySource(x, np.asarray(train.y), codes, 2, len(domains)),
        goal,
        plan,
        seed=seed_of(run.training_seed, 2),
    )
    learner.learn([unstable_trial(goal, plan)])
    network.eval()
    logits, y = outputs(network, validation.X)[2], np.asarray(validation.y)
    scaling = fit_temperature(logits, y, criterion=hyper["calibration"], domain=validation.domain)
    evidence = stable_evidence(y, scaling.apply(logits), np.ones(len(y)))
    facts = {"restarts": learner.restarts, "evidence": evidence.gain}
    return SplitNetworkPredictor(np.unique(train.y), network, scaling, evidence, facts)


def _network_of(stable: NetworkPredictor, row: Any, n_domains: int, name: str, seed: int) -> SplitNetwork:
    """A network of two trunks whose stable one, with its head, is the trained one."""
    import torch

    from sfboost.torch.networks import make_network
    from sfboost.torch.split_network import build_network

    network = build_network(
        lambda: make_network(name, tuple(row.shape[1:]), dropout=0.0),
        row,
        split="separate",
        n_classes=2,
        n_domains=n_domains,
        n_stable=None,
        n_unstable=1,
        seed=seed,
    )
    network.trunk.load_state_dict(stable.body[0].state_dict())  # type: ignore[index]
    head = stable.head
    with torch.no_grad():
        network.stable_head.weight.copy_(torch.from_numpy(head.coef[1:] - head.coef[:1]))
        network.stable_head.bias.copy_(torch.from_numpy(head.intercept[1:] - head.intercept[:1]))
    return network
