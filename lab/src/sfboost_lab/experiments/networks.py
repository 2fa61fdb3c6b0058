"""How the experiments train networks: many small ones as one, or Φ_U beside an f_S that is trained already.

On small tables all seeds and penalty weights of a group train as one model. On images f_S of SFB (paper) is
the model of its penalty, trained once for both; Φ_U is learned beside it, with f_S frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfboost.adaptation import StableEvidence
from sfboost.boosting.domains import stable_evidence
from sfboost.calibration import Temperature, fit_temperature
from sfboost_lab.baselines.contract import Floats, LinearHead, MostProbable
from sfboost_lab.experiments.engines import Session
from sfboost_lab.experiments.measuring import RunRows, fit_by_contract
from sfboost_lab.experiments.run import Run, digest

if TYPE_CHECKING:
    from sfboost.torch.split_network import SplitNetwork
    from sfboost_lab.baselines.learned.network import NetworkPredictor


@dataclass(frozen=True, eq=False)
class SplitNetworkPredictor(MostProbable):
    """A trained `SplitNetwork` with calibrated stable probabilities, behind the contract of predictors."""

    classes_: npt.NDArray[Any]
    network: SplitNetwork
    scaling: Temperature
    evidence_: StableEvidence
    facts: Mapping[str, Any] = field(default_factory=dict)
    precision: str = "float32"

    @property
    def temperature(self) -> float:
        """What the stable logits were divided by."""
        return self.scaling.temperature

    @property
    def head(self) -> LinearHead:
        """h_S, calibrated."""
        layer = self.network.stable_head
        weight, bias = (p.detach().double().numpy() / self.temperature for p in (layer.weight, layer.bias))
        return LinearHead.of(weight, bias)

    def features(self, X: Any) -> Floats:
        """Φ_S(X)."""
        return outputs(self.network, X)[0]

    def stable_and_unstable(self, X: Any) -> tuple[Floats, Floats]:
        """Log f_S of shape (n, K), and Φ_U."""
        _, unstable, logits = outputs(self.network, X)
        return self.scaling.apply(logits), unstable

    def predict_proba(self, X: Any) -> Floats:
        """f_S."""
        return np.exp(self.stable_and_unstable(X)[0])


def outputs(network: SplitNetwork, X: Any) -> tuple[Floats, Floats, Floats]:
    """Return Φ_S, Φ_U and the stable logits."""
    import torch

    with torch.no_grad():
        stable, unstable = network.features(torch.tensor(np.asarray(X, dtype=np.float32)))
        parts = (stable, unstable, network.stable_logits(stable))
    return tuple(part.double().numpy() for part in parts)  # type: ignore[return-value]


def fit_small(
    load: Callable[[Run], RunRows], run: Run, session: Session, rows: RunRows
) -> SplitNetworkPredictor:
    """Return the run's model; the first call of a group trains all of them.

    The group trains as a whole also when some of its runs are done: members share sums, so another company
    could change the last digits.
    """
    import torch

    members = list({digest(r.training()): r.unadapted() for r in session.group.runs}.values())
    key = ["small nets", [member.training() for member in members]]
    trained = session.arrays(key, lambda: _train(members, load))
    number = members.index(run.unadapted())
    network = _network(run, rows)
    states = {
        name: torch.from_numpy(np.array(v[number])) for name, v in trained.items() if name != "restarts"
    }
    network.load_state_dict(states)
    return calibrated(network, run, rows, restarts=int(trained["restarts"][number]))


def calibrated(network: SplitNetwork, run: Run, rows: RunRows, *, restarts: int) -> SplitNetworkPredictor:
    """Return a trained network with f_S calibrated on validation rows, or else on those it was trained on."""
    network.eval()
    validation, criterion = rows.validation or rows.train, run.hyper["calibration"]
    logits, y = outputs(network, validation.X)[2], np.asarray(validation.y)
    scaling = Temperature()
    if criterion:
        scaling = fit_temperature(logits, y, criterion=criterion, domain=validation.domain)
    evidence = stable_evidence(y, scaling.apply(logits), np.ones(len(y)))
    facts = {"restarts": restarts, "evidence": evidence.gain}
    return SplitNetworkPredictor(np.unique(rows.train.y), network, scaling, evidence, facts)


def fit_many_small(
    load: Callable[[Run], RunRows], run: Run, session: Session, rows: RunRows
) -> NetworkPredictor:
    """Return the run's baseline; the first call of a group trains those of all its seeds as one model."""
    from sfboost_lab.baselines import TRAINERS
    from sfboost_lab.baselines.learned.actir import ACTIR
    from sfboost_lab.baselines.learned.ensemble import fit_many

    members = list({digest(r.training()): r.unadapted() for r in session.group.runs}.values())

    def make() -> list[NetworkPredictor]:
        trains = [load(member).train for member in members]
        seeds = [member.training_seed for member in members]
        if run.hyper.get("in_order"):
            told = {name: value for name, value in run.hyper.items() if name in ACTIR.__dataclass_fields__}
            return fit_many(ACTIR(**told), trains, seeds, in_order=True, irm_weight=run.hyper.get("weight"))
        return fit_many(TRAINERS[run.trainer](**run.hyper), trains, seeds)

    trained = session.once(["many", [member.training() for member in members]], make)
    found: NetworkPredictor = trained[members.index(run.unadapted())]
    return found


def _train(members: Sequence[Run], load: Callable[[Run], RunRows]) -> dict[str, npt.NDArray[Any]]:
    import torch

    from sfboost.torch.plan import Goal
    from sfboost.torch.rows import ArraySource
    from sfboost.torch.split_network import seed_of
    from sfboost_lab.baselines.learned.boosting import grouped
    from sfboost_lab.baselines.learned.ensemble import learn_many

    sources: dict[int, tuple[RunRows, ArraySource]] = {}
    networks, goals, plans = [], [], set()
    for member in members:
        if member.seed not in sources:
            rows = load(member)
            train = rows.train
            n_domains, codes = len(np.unique(train.domain)), np.unique(train.domain, return_inverse=True)[1]
            x = torch.tensor(np.asarray(train.X, dtype=np.float32))
            source = ArraySource(x, np.asarray(train.y), codes, len(np.unique(train.y)), n_domains)
            sources[member.seed] = (rows, source)
        networks.append(_network(member, sources[member.seed][0]))
        told = grouped(member.hyper)
        goals.append(Goal(**{k: v for k, v in told.items() if k in Goal.__dataclass_fields__}))
        plans.add(told["plan"])
    (plan,) = plans  # what trains at once trains alike
    _, restarts = learn_many(
        networks,
        [sources[member.seed][1] for member in members],
        goals,
        [seed_of(member.training_seed, 2) for member in members],
        plan,
    )
    states = [network.state_dict() for network in networks]
    stacked = {name: np.stack([state[name].numpy() for state in states]) for name in states[0]}
    return {**stacked, "restarts": restarts}


def _network(run: Run, rows: RunRows) -> SplitNetwork:
    import torch

    from sfboost.torch.split_network import seed_of

    hyper, train = run.hyper, rows.train
    row = torch.tensor(np.asarray(train.X[:2], dtype=np.float32))
    shape = {"n_classes": len(np.unique(train.y)), "n_domains": len(np.unique(train.domain))}
    shape |= {"n_stable": hyper["n_stable"], "n_unstable": hyper["n_unstable"]}
    return _built(hyper["network"], row, hyper["split"], seed_of(run.training_seed, 0), **shape)


def _built(name: str, row: Any, split: str, seed: int, **shape: Any) -> SplitNetwork:
    from sfboost.torch.networks import make_network
    from sfboost.torch.split_network import build_network

    def trunk() -> Any:
        return make_network(name, tuple(row.shape[1:]), dropout=0.0)

    return build_network(trunk, row, split=split, seed=seed, **shape)


def blocks(seeds: int, candidates: int, members: int = 180) -> list[range]:
    """Cut seeds into blocks that train together, about so many members each.

    Examples
    --------
    >>> blocks(25, 18)
    [range(0, 10), range(10, 20), range(20, 25)]
    """
    size = max(1, members // candidates)
    return [range(first, min(first + size, seeds)) for first in range(0, seeds, size)]


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

    def train() -> dict[str, Any]:
        made: Any = fit_by_contract(run, session, rows)
        body = {f"body.{name}": value.numpy() for name, value in made.body.state_dict().items()}
        return {**body, "coef": made.head.coef, "intercept": made.head.intercept}

    arrays = session.arrays(["trained", run.training()], train)
    trainer = TRAINERS[run.trainer](**run.hyper)
    predictor: NetworkPredictor = trainer.predictor_of(trainer.pose(rows.train, run.training_seed))
    state = {n.removeprefix("body."): torch.from_numpy(v) for n, v in arrays.items() if n.startswith("body.")}
    predictor.body.load_state_dict(state)
    return replace(predictor, head=LinearHead(arrays["coef"], arrays["intercept"]))


def fit_beside(run: Run, session: Session, rows: RunRows) -> SplitNetworkPredictor:
    """Take the trained f_S, learn one unstable feature on the joint risk with f_S frozen, calibrate f_S."""
    import torch

    from sfboost.torch.learning import Learner
    from sfboost.torch.plan import Goal, Plan, unstable_trial
    from sfboost.torch.rows import ArraySource
    from sfboost.torch.split_network import seed_of

    hyper = run.hyper
    of_stable = Run(
        run.dataset, hyper["stability"], run.seed, run.protocol, hyper=hyper["stable"], data=run.data
    )
    stable = session.once(["model", of_stable.training()], lambda: fit_once(of_stable, session, rows))
    train = rows.train
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
    return calibrated(network, run, rows, restarts=learner.restarts)


def _network_of(stable: NetworkPredictor, row: Any, n_domains: int, name: str, seed: int) -> SplitNetwork:
    """A network of two trunks whose stable one, with its head, is the trained one."""
    import torch

    shape = {"n_classes": 2, "n_domains": n_domains, "n_stable": None, "n_unstable": 1}
    network = _built(name, row, "separate", seed, **shape)
    network.trunk.load_state_dict(stable.body[0].state_dict())  # type: ignore[index]
    head = stable.head
    with torch.no_grad():
        network.stable_head.weight.copy_(torch.from_numpy(head.coef[1:] - head.coef[:1]))
        network.stable_head.bias.copy_(torch.from_numpy(head.intercept[1:] - head.intercept[:1]))
    return network
