"""Settings that find themselves: a small search that reads no label of a test domain.

1. A guess Û of every row by a network that did not see it: what is easy to learn, and differs between the
   training domains.
2. At most eight candidates for f_S: views of the rows, drawn as they are or so that label and guess are
   independent; then the best of these with a penalty or with dropout. Each is scored by the risk on held-out
   rows that are weighted so that label and guess are independent. That is the risk in a domain where the
   guess says nothing, and an f_S that reads what the guess reads is far from its minimum. With three domains
   or more the best few are also trained without some domains and scored there; the worse of the two risks
   counts.
3. Φ_U beside the best, on the joint risk.

Rows are in five parts: a network learns from three, the fourth stops it and the fifth judges it, since rows
that stopped a network do not show what it reads. What predicts is the mean of the five networks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from scipy.ndimage import minimum_filter1d
from torch import Tensor, nn

from sfboost.torch.candidates import Candidate, first_candidates, member_network, variants
from sfboost.torch.learning import Learner
from sfboost.torch.plan import Goal, Plan, Trial, trials, unstable_trial
from sfboost.torch.progress import TrainingProgress
from sfboost.torch.rows import ArraySource, balancing_weights
from sfboost.torch.split_network import (
    Ensemble,
    SplitNetwork,
    guess_classes,
    seed_of,
    surest_domain,
)
from sfboost.torch.trainer import TrainingDivergedError

Look = Callable[[], float]
History = list[dict[str, Any]]

_PLAN = Plan(steps=400, unstable_steps=200, learning_rate=3e-3, max_restarts=1)
# Φ_U may take so many times the steps of a guess: held-out rows stop it.
_LONGER = 10
# Rows of a domain that a step sees at most.
_BATCH = 1000
_FOLDS = 5
# A class of a domain with as many rows has enough of them in one held-out fifth.
_MANY = 1000
# Folds that all candidates are trained on, and how many candidates domains that are left out compare.
_FIRST_FOLDS, _FINALISTS, _LEFT_OUT = 2, 3, 5
# Chi-square by degree of freedom beyond which a guess is about something that differs between domains.
_DIFFERENT = 4.0


@dataclass(frozen=True, eq=False)
class Fold:
    """Positions of rows, in ascending order: to learn from, to stop by, to be judged by."""

    train: np.ndarray
    stop: np.ndarray
    judge: np.ndarray


def make_folds(y: np.ndarray, domain: np.ndarray, seed: int) -> list[Fold]:
    """Divide the rows so that every class of every domain is in each part.

    With few rows there are five folds, and every row judges one of them; with many there is one.

    Examples
    --------
    >>> y = np.tile([0, 1], 50)
    >>> folds = make_folds(y, np.zeros(100, int), 0)
    >>> len(folds), sorted(np.concatenate([fold.judge for fold in folds]).tolist()) == list(range(100))
    (5, True)
    """
    rng, number = np.random.default_rng(seed), np.zeros(len(y), dtype=int)
    smallest = len(y)
    for name in np.unique(domain):
        for label in np.unique(y[domain == name]):
            rows = np.flatnonzero((domain == name) & (y == label))
            smallest = min(smallest, len(rows))
            # Where a fold gets one row more is drawn, so that folds are of a size.
            number[rng.permutation(rows)] = (np.arange(len(rows)) + rng.integers(_FOLDS)) % _FOLDS
    folds = []
    for k in range(1 if smallest >= _MANY else _FOLDS):
        judge, stop = number == k, number == (k + 1) % _FOLDS
        folds.append(Fold(*(np.flatnonzero(part) for part in (~judge & ~stop, stop, judge))))
    return folds


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    network : Ensemble
        Of the folds' networks.
    candidate : Candidate
        The chosen one.
    rows : array of int
        Rows that judged a fold.
    logits, unstable, guess : arrays
        f_S of shape (n, K), Φ_U and Û of these rows, by networks that had not seen them.
    table : list of dict
        One line for each candidate, the best first.
    history : list of dict
        Of the networks that are kept.
    """

    network: Ensemble
    candidate: Candidate
    rows: np.ndarray
    logits: np.ndarray
    unstable: np.ndarray
    guess: np.ndarray
    table: list[dict[str, Any]]
    history: History


@dataclass(eq=False)
class _Tried:
    """A candidate and what its folds have said so far."""

    candidate: Candidate
    networks: list[SplitNetwork] = field(default_factory=list)
    losses: list[np.ndarray] = field(default_factory=list)
    history: History = field(default_factory=list)
    left_out: float | None = None


@dataclass(eq=False)
class Search:
    """Finds a stable and an unstable part for labelled rows in memory.

    Parameters
    ----------
    x : Tensor
        The rows, in any order.
    y, domain : arrays of int
        Class and domain of each row, counted from zero.
    goal : Goal
        Penalties.
    network : str or nn.Module
        Trunk of all networks.
    views : mapping
        What makes each view, by its name.
    seed : int
    budget : int
        Candidates at most.
    progress : TrainingProgress
    callback : callable, optional
        Called after every step of every training with its line of the history.
    """

    x: Tensor
    y: np.ndarray
    domain: np.ndarray
    goal: Goal
    network: str | nn.Module
    views: Mapping[str, Callable[[], nn.Module]]
    seed: int
    budget: int
    progress: TrainingProgress
    callback: Callable[[dict[str, Any]], object] | None = None

    def __post_init__(self) -> None:
        # One domain after the other, as the sources of their parts will have them.
        self.order = np.argsort(self.domain, kind="stable")
        self.x = self.x[torch.from_numpy(self.order).to(self.x.device)]
        self.y, self.domain = self.y[self.order], self.domain[self.order]
        self.n_classes, n_domains = int(self.y.max()) + 1, int(self.domain.max()) + 1
        self.folds = make_folds(self.y, self.domain, self.seed)
        self.few = min(_FIRST_FOLDS, len(self.folds))
        self.first = first_candidates(list(self.views))[: self.budget]
        parts = min(n_domains, _LEFT_OUT)
        self.left_out = np.array_split(np.arange(n_domains), parts) if n_domains > 2 else []
        large = np.bincount(self.domain).max() > 2 * _BATCH
        self.plan = _PLAN.changed(batch_size=_BATCH if large else None)
        if isinstance(self.network, nn.Module):  # weights that are worth something must not be thrown about
            self.plan = self.plan.changed(learning_rate=Plan.learning_rate)

    def run(self) -> SearchResult:
        """Search, and return the best."""
        n_folds, more = len(self.folds), len(self._variants(self.first[0]))
        n_candidates = min(self.budget, len(self.first) + more)
        finalists = min(_FINALISTS, n_candidates)
        each = n_folds - self.few + len(self.left_out)
        with self.progress as progress:
            progress.total = n_candidates * self.few + finalists * each + 2 * n_folds
            self.guess = self._first_guess()
            self.weight = balancing_weights(self.y, self.guess, self.domain)
            tried: list[_Tried] = []
            self._try(self.first, tried)
            best = min(tried, key=self._score).candidate
            self._try(self._variants(best)[: self.budget - len(self.first)], tried)
            tried.sort(key=self._score)
            for one in tried[:finalists]:
                self._train(one, n_folds)
                self._leave_out(one)
            chosen = min(tried[:finalists], key=self._worse)
            for k in range(n_folds):
                chosen.history += self._learn_unstable(chosen, k)
                progress.step("unstable part")
        return self._found(chosen, tried)

    def _variants(self, best: Candidate) -> list[Candidate]:
        return variants(best, self.goal, dropout=isinstance(self.network, str) and self.network != "linear")

    # -- the guess --------------------------------------------------------------------------------------

    def _first_guess(self) -> np.ndarray:
        """Name a class for every row by a network that did not see it (of one fold: that saw three fifths).

        How long the networks are trained is found: after as many steps as make the guess right most unequally
        often in the training domains. Where they never differ beyond chance, after as many as make it best.
        """
        paths = []
        for k in range(len(self.folds)):
            paths.append(self._guess_path(k))
            self.progress.step("first guess")
        judged, differences, risks, guesses = self._judged(len(self.folds)), [], [], []
        for looks in zip(*paths, strict=False):  # until the first of the folds has stopped
            guess = np.zeros(len(self.y), dtype=int)
            for k, (_, named) in enumerate(looks):
                guess[self._named(k)] = named
            part = self.y[judged], guess[judged], self.domain[judged]
            differences.append(difference_between_domains(*part))
            risks.append(float(np.mean([risk for risk, _ in looks])))
            guesses.append(guess)
        return guesses[_moment(differences, risks)]

    def _guess_path(self, k: int) -> list[tuple[float, np.ndarray]]:
        """Train Φ_U alone on one fold; return its risk and what it names at each look."""
        network, path = self._build(Candidate(), k), list[tuple[float, np.ndarray]]()
        held, seen = self._source(self.folds[k].stop), self._source(self._named(k))

        def look() -> float:
            risk = float(_losses(_unstable_logits(network, held), held.target).mean())
            path.append((risk, guess_classes(network, seen)))
            return risk

        trial = replace(trials(Goal(), self.plan)[0], name="first guess", watched=True)
        self._learn(network, trial, Goal(), self.folds[k].train, k, look)
        return path

    def _named(self, k: int) -> np.ndarray:
        """Rows that fold k names a class for: all of them if there is one fold."""
        return self.folds[k].judge if len(self.folds) > 1 else np.arange(len(self.y))

    # -- candidates -------------------------------------------------------------------------------------

    def _try(self, candidates: Sequence[Candidate], tried: list[_Tried]) -> None:
        """Train candidates on the first folds, and add them to those that were tried."""
        for candidate in candidates:
            one = _Tried(candidate)
            try:
                self._train(one, self.few)
                tried.append(one)
            except TrainingDivergedError:  # an answer about this candidate, unless there is no other
                if not tried and candidate is candidates[-1]:
                    raise
                self.progress.total -= self.few - len(one.networks)

    def _train(self, tried: _Tried, n_folds: int) -> None:
        """Train f_S on so many folds, and let each be judged."""
        for k in range(len(tried.networks), n_folds):
            fold = self.folds[k]
            network, history = self._learn_stable(tried.candidate, k, fold.train, fold.stop)
            tried.networks.append(network)
            tried.history += history
            tried.losses.append(_numbers(self._losses(network, fold.judge)))
            self.progress.step(str(tried.candidate))

    def _leave_out(self, tried: _Tried) -> None:
        """Train without some domains, as many times as it takes to score every one."""
        risks, fold = [], self.folds[0]
        for domains in self.left_out:
            train, stop = (rows[~np.isin(self.domain[rows], domains)] for rows in (fold.train, fold.stop))
            if len(np.unique(self.y[train])) == self.n_classes:
                network, _ = self._learn_stable(tried.candidate, 0, train, stop)
                for name in domains:
                    risks.append(float(self._losses(network, np.flatnonzero(self.domain == name)).mean()))
            self.progress.step(f"{tried.candidate}, left out")
        tried.left_out = float(np.mean(risks)) if risks else None

    def _score(self, tried: _Tried) -> float:
        """Risk on held-out rows on which the guess says nothing."""
        weights = self.weight[self._judged(len(tried.losses))]
        return float(np.average(np.concatenate(tried.losses), weights=weights))

    def _worse(self, tried: _Tried) -> float:
        """The worse of that risk and the one in domains left out, if there are."""
        return max(self._score(tried), tried.left_out or 0.0)

    def _judged(self, n_folds: int) -> np.ndarray:
        return np.concatenate([fold.judge for fold in self.folds[:n_folds]])

    # -- networks ---------------------------------------------------------------------------------------

    def _source(self, rows: np.ndarray) -> ArraySource:
        """Serve some rows, which are in ascending order; domains that are left out do not count."""
        domain = np.unique(self.domain[rows], return_inverse=True)[1]
        x = self.x[torch.from_numpy(rows).to(self.x.device)]
        return ArraySource(x, self.y[rows], domain, self.n_classes, int(domain.max()) + 1)

    def _build(self, candidate: Candidate, k: int) -> SplitNetwork:
        """Return a new network for fold k; its weights depend on the seed and the fold."""
        return member_network(
            candidate,
            self.network,
            self.views[candidate.view],
            self.x[:2],
            n_classes=self.n_classes,
            n_domains=int(self.domain.max()) + 1,
            seed=seed_of(self.seed, 0, k),
        )

    def _learn_stable(
        self, candidate: Candidate, k: int, train: np.ndarray, stop: np.ndarray
    ) -> tuple[SplitNetwork, History]:
        """Train f_S as a candidate says, stopped by the weighted risk on other rows."""
        network, held = self._build(candidate, k), self._source(stop)
        share = torch.from_numpy(self.weight[stop] / self.weight[stop].sum()).to(held.target)

        def look() -> float:
            return float((share * _losses(_stable_logits(network, held.x), held.target)).sum())

        penalty = self.goal.penalty if candidate.penalty == "own" else candidate.penalty
        goal = Goal(penalty=penalty, penalty_weight=candidate.penalty_weight)
        trial = next(trial for trial in trials(goal, self.plan) if trial.name == "stable")
        return network, self._learn(network, trial, goal, train, k, look, candidate.balance)

    def _learn_unstable(self, tried: _Tried, k: int) -> History:
        """Train Φ_U beside f_S, stopped by the joint risk."""
        network, fold = tried.networks[k], self.folds[k]
        held = self._source(fold.stop)
        log_prior = held.log_prior()[torch.from_numpy(self.domain[fold.stop])].to(held.target)
        known = _stable_logits(network, held.x).log_softmax(1) - log_prior

        def look() -> float:
            joint = known + _unstable_logits(network, held).log_softmax(1)
            return float(_losses(joint, held.target).mean())

        plan = self.plan.changed(unstable_steps=_LONGER * self.plan.unstable_steps)
        trial = replace(unstable_trial(self.goal, plan), watched=True)
        return self._learn(network, trial, self.goal, fold.train, k, look)

    def _learn(
        self,
        network: SplitNetwork,
        trial: Trial,
        goal: Goal,
        rows: np.ndarray,
        k: int,
        look: Look,
        balance: bool = False,
    ) -> History:
        """Train through one trial; return the history."""
        source = self._source(rows)
        source.balance(self.guess[rows] if balance else None)
        learner = Learner(
            network,
            source,
            goal,
            self.plan,
            seed=seed_of(self.seed, 2, k),
            monitor=look,
            quiet=True,
            callback=self.callback,
        )
        learner.learn([trial])
        return [{"fold": k, **row} for row in learner.history]

    def _losses(self, network: SplitNetwork, rows: np.ndarray) -> Tensor:
        """Cross-entropy of f_S on each of some rows."""
        source = self._source(rows)
        return _losses(_stable_logits(network, source.x), source.target)

    # -- what was found ---------------------------------------------------------------------------------

    def _found(self, best: _Tried, tried: Sequence[_Tried]) -> SearchResult:
        network = Ensemble(best.networks, surest_domain(best.networks)).eval()
        logits, unstable = [], []
        for member, fold in zip(best.networks, self.folds, strict=True):
            x = self._source(fold.judge).x
            logits.append(_numbers(_stable_logits(member, x)))
            with torch.no_grad():
                unstable.append(_numbers(network.said(member, x)))
        rows = self._judged(len(self.folds))
        table = [
            {
                "candidate": str(one.candidate),
                "chosen": one is best,
                "risk": self._score(one),
                "risk_left_out": one.left_out,
            }
            for one in [best, *(one for one in tried if one is not best)]
        ]
        return SearchResult(
            network,
            best.candidate,
            self.order[rows],
            np.concatenate(logits),
            np.concatenate(unstable),
            self.guess[rows],
            table,
            best.history,
        )


def difference_between_domains(y: np.ndarray, guess: np.ndarray, domain: np.ndarray) -> float:
    """Return chi-square over its degrees of freedom: how much the guess is right more often in some domains.

    A feature of the same meaning everywhere has about one.

    Examples
    --------
    >>> y, domain = np.zeros(200, int), np.repeat([0, 1], 100)
    >>> often = np.where(np.arange(200) % 100 < np.where(domain == 0, 10, 30), 1, 0)
    >>> round(difference_between_domains(y, often, domain), 1)
    12.5
    """
    parts = [(guess == y)[domain == name] for name in np.unique(domain)]
    share, count = np.array([part.mean() for part in parts]), np.array([len(part) for part in parts])
    pooled = float(np.average(share, weights=count))
    if len(parts) < 2 or pooled in (0.0, 1.0):
        return 0.0
    return float((count * (share - pooled) ** 2).sum() / (pooled * (1 - pooled)) / (len(parts) - 1))


def _moment(differences: Sequence[float], risks: Sequence[float]) -> int:
    """Return when the guess is most unequal, or best where it never is unequal.

    A moment counts no more than the ones beside it: while networks change their minds, some are ahead of
    others, and what they then name together is no feature.

    Examples
    --------
    >>> _moment([0.0, 16.9, 33.9, 33.3, 33.3, 33.3], [0.7, 0.6, 0.5, 0.4, 0.3, 0.3])
    3
    >>> _moment([12.7, 15.9, 15.5, 12.3], [0.7, 0.6, 0.5, 0.4])
    1
    >>> _moment([0.0, 1.0, 2.0], [0.7, 0.5, 0.6])
    1
    """
    least = minimum_filter1d(np.asarray(differences), size=3)
    if least.max() <= _DIFFERENT:
        return int(np.argmin(risks))
    return max(range(len(least)), key=lambda i: (least[i], differences[i]))


def _losses(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of each row."""
    return -(target * logits.log_softmax(1)).sum(1)


def _numbers(values: Tensor) -> np.ndarray:
    return np.asarray(values.double().cpu().numpy())


def _stable_logits(network: SplitNetwork, x: Tensor) -> Tensor:
    with torch.no_grad():
        return network.stable_logits(network.stable_features(x))


def _unstable_logits(network: SplitNetwork, source: ArraySource) -> Tensor:
    """Each row by the head of its domain."""
    with torch.no_grad():
        return network.unstable_logits(network.unstable_features(source.x), source.sizes)
