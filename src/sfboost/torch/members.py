"""The networks that a search trains: one for each fold, each stopped by the rows that it does not see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sfboost.torch.candidates import Candidate, trunk_maker
from sfboost.torch.folds import Fold, make_folds, row_losses, stable_logits, unstable_logits
from sfboost.torch.learning import Learner, Trial, trials, unstable_trial
from sfboost.torch.plan import Goal, Plan
from sfboost.torch.rows import ArraySource
from sfboost.torch.split_network import SplitNetwork, build_network, seed_of
from sfboost.torch.views import depends_on_rows, found_views, steady_columns, views_of

Look = Callable[[], float]
History = list[dict[str, Any]]

_PLAN = Plan(steps=400, unstable_steps=200, learning_rate=3e-3, max_restarts=1, monitor_every=5, patience=8)
# Φ_U may take so many times the steps of a guess: held-out rows stop it, and one that was cut off before says
# of rows that mean the same more where f_S helps.
_LONGER = 10
# Rows of a domain that a step sees at most.
_BATCH = 1000


@dataclass(eq=False)
class Members:
    """Labelled rows in folds, and how a network learns from them.

    Parameters
    ----------
    x : Tensor
        The rows, sorted by domain.
    y, domain : arrays of int
        Class and domain of each row, counted from zero.
    goal : Goal
        Penalties.
    network : str or nn.Module
        Trunk of the candidates: a name, "auto" or a module of one's own.
    seed : int
    options : dict
        Of the `Trainer`.
    checkpoint : path, optional
        Folder to save to and to continue from.

    Attributes
    ----------
    folds : list of Fold
    found : list of dict of dict of array
        Buffers of the views that depend on the rows, by fold and view.
    """

    x: Tensor
    y: np.ndarray
    domain: np.ndarray
    goal: Goal
    network: str | nn.Module
    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    checkpoint: Path | None = None
    found: list[dict[str, dict[str, np.ndarray]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.own = self.network if isinstance(self.network, nn.Module) else None
        self.name = self.network if isinstance(self.network, str) else "own"
        self.shape = tuple(self.x.shape[1:])
        self.n_classes, self.n_domains = int(self.y.max()) + 1, int(self.domain.max()) + 1
        self.folds: list[Fold] = make_folds(self.y, self.domain, self.seed)
        large = np.bincount(self.domain).max() > 2 * _BATCH
        self.plan = _PLAN.changed(batch_size=_BATCH if large else None)
        if self.own is not None:  # weights that are worth something must not be thrown about
            self.plan = self.plan.changed(learning_rate=Plan.learning_rate)

    def find_views(self, guess: np.ndarray) -> None:
        """Find the views that depend on the rows and on Û, for each fold without what it holds out."""
        names, x = views_of(self.shape), self.x.double().cpu().numpy()
        every = [fold.train for fold in self.folds]
        parts = [(x[rows], self.y[rows], guess[rows], self.domain[rows]) for rows in every]
        self.found = [found_views(*part, names) for part in parts]
        for i, name in enumerate(names):
            if any(self._same(name, other) for other in names[:i]):
                for found in self.found:
                    del found[name]

    def _same(self, one: str, other: str) -> bool:
        """Whether two views that were found hide the same in every fold: one of them is enough."""
        return all(
            one in found and other in found and _equal(found[one], found[other]) for found in self.found
        )

    def offers(self, view: str) -> bool:
        """Return whether a view is one in every fold: it hides something, and not everything."""
        return not depends_on_rows(view) or all(view in found for found in self.found)

    def saved_in(self, folder: str) -> Members:
        """Return the same rows and folds, with checkpoints in a folder of their own."""
        return replace(self, checkpoint=None if self.checkpoint is None else self.checkpoint / folder)

    def stopped_elsewhere(self) -> Members | None:
        """Return the same folds with networks that the next fold stops; None if there is one fold."""
        if len(self.folds) == 1:
            return None
        others = self.saved_in("stopped elsewhere")
        following = [*self.folds[1:], self.folds[0]]
        others.folds = [
            Fold(np.setdiff1d(fold.train, after.held), after.held)
            for fold, after in zip(self.folds, following, strict=True)
        ]
        return others

    def named(self, k: int) -> np.ndarray:
        """Return the rows that a guess by fold k names: those held out; all of them if there is one fold."""
        return np.arange(len(self.y)) if len(self.folds) == 1 else self.folds[k].held

    def guess_candidate(self) -> Candidate:
        """Return the network of the first guess and of Φ_U."""
        return Candidate(network="narrow" if self.name == "auto" else self.name)

    def source(self, rows: np.ndarray) -> ArraySource:
        """Serve some rows, which are in ascending order."""
        x = self.x[torch.from_numpy(rows).to(self.x.device)]
        return ArraySource(x, self.y[rows], self.domain[rows], self.n_classes, self.n_domains)

    def build(self, candidate: Candidate, k: int) -> SplitNetwork:
        """Return a new network for fold k; its weights depend on the seed and the fold."""
        network = build_network(
            self._trunk_maker(candidate),
            self.x[:2],
            split="separate",
            n_classes=self.n_classes,
            n_domains=self.n_domains,
            n_stable=None,
            n_unstable=1 if self.n_classes == 2 else self.n_classes,
            seed=seed_of(self.seed, 0, k),
            make_unstable_trunk=self._trunk_maker(self.guess_candidate()),
        )
        for name, values in self.found[k].get(candidate.view, {}).items() if self.found else ():
            network.trunk[0].get_buffer(name).copy_(torch.from_numpy(values))  # type: ignore[index]
        return network

    def _trunk_maker(self, candidate: Candidate) -> Callable[[], nn.Module]:
        return trunk_maker(candidate, self.own, self.shape, self.n_classes)

    def without(self, domains: np.ndarray) -> tuple[Members, np.ndarray] | None:
        """Return the rows of the other domains, in one fold, and their positions; None if a class is lost."""
        rows = np.flatnonzero(~np.isin(self.domain, domains))
        if len(np.unique(self.y[rows])) < self.n_classes:
            return None
        others = replace(
            self,
            x=self.x[torch.from_numpy(rows).to(self.x.device)],
            y=self.y[rows],
            domain=np.unique(self.domain[rows], return_inverse=True)[1],
            checkpoint=None if self.checkpoint is None else self.checkpoint / f"without {domains.tolist()}",
        )
        others.folds = others.folds[:1]
        return others, rows

    def learn_guess(self, network: SplitNetwork, k: int, look: Look) -> None:
        """Train Φ_U alone, without f_S."""
        trial = next(trial for trial in trials(Goal(), self.plan) if trial.name == "guess")
        self._learn(network, k, replace(trial, name="first guess", watched=True), look, self.goal)

    def learn_stable(
        self, network: SplitNetwork, k: int, candidate: Candidate, guess: np.ndarray, weight: np.ndarray
    ) -> History:
        """Train f_S as a candidate says, stopped by the weighted risk on the held-out rows."""
        held = self.source(self.folds[k].held)
        share = torch.from_numpy(weight[self.folds[k].held] / weight[self.folds[k].held].sum()).to(
            held.target
        )

        def look() -> float:
            return float((share * row_losses(stable_logits(network, held.x), held.target)).sum())

        goal = self._goal_of(candidate)
        balanced = guess if candidate.balance else None
        if candidate.split == "shared":
            both, stage = self._shared(network, k), self._stage("shared", goal, candidate)
            return self._learn(both, k, stage, look, goal, candidate, balanced)
        stage = self._stage("stable", goal, candidate)
        history = self._learn(network, k, stage, look, goal, candidate, balanced)
        if candidate.split == "alternating":
            start = {name: part.clone() for name, part in network.state_dict().items() if "unstable" in name}
            history += self.learn_unstable(network, k, candidate, briefly=True)
            again = self._stage("again", goal, candidate)
            history += self._learn(network, k, again, look, goal, candidate, balanced)
            network.load_state_dict(network.state_dict() | start)
        if candidate.steady and self._hide_drifting(network, k):
            # A head of its own for what is left; the features stay as they were learned.
            network.trunk.requires_grad_(False)
            head = replace(stage, name="head", lowers=None)
            history += self._learn(network, k, head, look, goal, candidate, balanced)
            network.trunk.requires_grad_(True)
        return history

    def _goal_of(self, candidate: Candidate) -> Goal:
        """What a candidate asks of f_S."""
        penalty = self.goal.penalty if candidate.penalty == "own" else candidate.penalty
        weight = candidate.penalty_weight
        return replace(self.goal, split=candidate.split, penalty=penalty, penalty_weight=weight)

    def _stage(self, name: str, goal: Goal, candidate: Candidate) -> Trial:
        """The trial of that name, without what comes before the penalties."""
        trial = next(trial for trial in trials(goal, self.plan) if trial.name == name)
        phase = replace(trial.phases[-1], weight_decay=candidate.weight_decay)
        return replace(trial, phases=(phase,))

    def _shared(self, network: SplitNetwork, k: int) -> SplitNetwork:
        """Return the same f_S with a Φ_U that is the other half of its trunk's features."""
        assert isinstance(network.trunk, nn.Sequential)
        trunk = network.trunk[:-1]
        both = build_network(
            lambda: trunk,
            self.x[:2],
            split="shared",
            n_classes=self.n_classes,
            n_domains=self.n_domains,
            n_stable=None,
            n_unstable=None,
            seed=seed_of(self.seed, 0, k),
        )
        both.stable_head = network.stable_head
        return both

    def _hide_drifting(self, network: SplitNetwork, k: int) -> bool:
        """Hide the learned features that drift between domains; say whether some are left."""
        rows = self.folds[k].train
        with torch.no_grad():
            features = network.stable_features(self.source(rows).x).double().cpu().numpy()
        steady = steady_columns(features, self.y[rows], self.domain[rows])
        if not (steady & (features.std(axis=0) > 0)).any():
            return False
        network.trunk[-1].kept.copy_(torch.from_numpy(steady))  # type: ignore[index]
        return True

    def learn_unstable(
        self, network: SplitNetwork, k: int, candidate: Candidate, *, briefly: bool = False
    ) -> History:
        """Train Φ_U beside f_S, stopped by the joint risk on the held-out rows; a guess is made briefly."""
        held = self.source(self.folds[k].held)
        log_prior = held.log_prior()[torch.from_numpy(self.domain[self.folds[k].held])]
        known = stable_logits(network, held.x).log_softmax(1) - log_prior.to(held.target)

        def look() -> float:
            joint = known + unstable_logits(network, held).log_softmax(1)
            return float(row_losses(joint, held.target).mean())

        plan = self.plan if briefly else self.plan.changed(unstable_steps=_LONGER * self.plan.unstable_steps)
        # In turns it is f_S that becomes independent, afterwards; the Φ_U that is kept comes last.
        goal = replace(self.goal, split=candidate.split) if briefly else self.goal
        trial = replace(unstable_trial(goal, plan), watched=True)
        if briefly:  # another file than that of the Φ_U which is kept
            phase = replace(trial.phases[0], name="beside")
            trial = replace(trial, name="beside", phases=(phase,))
        return self._learn(network, k, trial, look, goal, candidate)

    def _learn(
        self,
        network: SplitNetwork,
        k: int,
        trial: Trial,
        look: Look,
        goal: Goal,
        candidate: Candidate | None = None,
        guess: np.ndarray | None = None,
    ) -> History:
        """Train through one trial; return the history."""
        rows = self.folds[k].train
        source = self.source(rows)
        source.balance(None if guess is None else guess[rows])
        folder = None
        if self.checkpoint is not None and candidate is not None:
            folder = self.checkpoint / f"{candidate}, fold {k}"
        learner = _Quiet(
            network,
            source,
            goal,
            self.plan.changed(checkpoint=folder),
            seed=seed_of(self.seed, 2, k),
            monitor=look,
            trainer_options=self.options,
        )
        learner.learn([trial])
        return [{"fold": k, **row} for row in learner.history]


def _equal(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


class _Quiet(Learner):
    """A candidate that finds nothing is an answer, not a warning."""

    def give_up(self, trial: Trial, baseline: float, best: float) -> None:
        pass
