"""Settings that find themselves: a small search that reads no label of a test domain.

1. A first guess Û of every row (`first_guess`).
2. Ways to a stable part (`candidates`), each stopped and scored by the risk on held-out rows that are
   weighted so that label and guess are independent. That is the risk in a domain where the guess says
   nothing; its minimum is the f_S that is wanted, and an f_S that reads what the guess reads is far from it.
   Every view of the rows first, on two folds; the best with one thing changed, on two folds; the four best
   on all folds. With three domains or more each of the four is also trained without some domains and scored
   there, and the worse of its two risks counts: what is unstable may be hard to learn, and the guess then
   about something else. After the views Û is guessed again, beside the best f_S; if it is another one, they
   are tried again.
3. Φ_U beside the best, on the joint risk, stopped where that is lowest on held-out rows.

What predicts is the mean of the folds' networks. What is said about f_S was measured on rows that had no part
in a network: with five folds the best is learned once more, and the next fold stops it. The few rows in which
the guess is wrong decide when to stop, and look better than others for it.
"""

from __future__ import annotations

import copy
import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.metrics import balanced_accuracy_score
from torch import Tensor

from sfboost.torch.candidates import Candidate, first_candidates, variants
from sfboost.torch.first_guess import first_guess
from sfboost.torch.folds import balancing_weights, difference_between_domains, row_losses, stable_logits
from sfboost.torch.members import History, Members
from sfboost.torch.progress import TrainingProgress
from sfboost.torch.side_by_side import align_unstable, mean_network, stretch_of_mean
from sfboost.torch.split_network import SplitNetwork, guess_classes
from sfboost.torch.trainer import TrainingDivergedError

_FIRST_FOLDS = 2
# A second guess must be right about as often as the first, and about as unequally often in the domains; it is
# not worth it where both name the same class in nearly all rows.
_AS_GOOD, _THE_SAME = 0.7, 0.99
_FINALISTS = 4
_LEFT_OUT = 5


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    network : SplitNetwork
        The mean of the folds' networks.
    architecture : dict
        What the network is made of, for `sfboost.torch.side_by_side.searched_trunk`.
    rows : array of int
        Rows that were held out of a fold.
    logits : array of shape (n, K)
        Of these rows, by a network that did not learn from them and, with five folds, that they did not stop.
    stretch : float
        Factor of the mean of the folds' logits.
    unstable, guess : arrays
        Of these rows, by the network that did not learn from them.
    table : list of dict
        One line for each candidate, the best first.
    history : list of dict
        Of the networks that are kept.
    """

    network: SplitNetwork
    architecture: dict[str, Any]
    rows: np.ndarray
    logits: np.ndarray
    stretch: float
    unstable: np.ndarray
    guess: np.ndarray
    table: list[dict[str, Any]]
    history: History


@dataclass(eq=False)
class _Tried:
    """A candidate and what its folds have said so far."""

    candidate: Candidate
    networks: dict[int, SplitNetwork] = field(default_factory=dict)
    losses: dict[int, np.ndarray] = field(default_factory=dict)
    right: dict[int, np.ndarray] = field(default_factory=dict)
    history: History = field(default_factory=list)
    left_out: float = math.nan
    seconds: float = 0.0


class Search:
    """Finds a stable and an unstable part for labelled rows in memory.

    Parameters
    ----------
    x, y, domain, **options
        As in `sfboost.torch.members.Members`; the rows in any order.
    budget : float or str
        Candidates at most, or "90 s": none is begun that would leave too little of it to finish the best.
    bar, lines : bool
        How progress is told, see `sfboost.torch.progress.TrainingProgress`.
    """

    def __init__(
        self,
        x: Tensor,
        y: np.ndarray,
        domain: np.ndarray,
        *,
        budget: float | str = "auto",
        bar: bool = False,
        lines: bool = False,
        **options: Any,
    ) -> None:
        self.order = np.argsort(domain, kind="stable")
        rows = torch.from_numpy(self.order).to(x.device)
        self.members = Members(x[rows], y[self.order], domain[self.order], **options)
        self.most, seconds = read_budget(budget)
        self.first = first_candidates(self.members.name, self.members.shape)
        self.few = range(len(self.members.folds))[:_FIRST_FOLDS]
        n = self.members.n_domains
        self.left_out = np.array_split(np.arange(n), min(n, _LEFT_OUT)) if n > 2 else []
        self.progress = TrainingProgress(0, "search", bar=bar, lines=lines, limit=seconds)
        self.tried: list[_Tried] = []
        self.guessed_again = False

    def _announce(self, first: Sequence[Candidate], before: int = 0) -> None:
        """Tell how much there is to do from the first round on, and `before` it."""
        variants = len(self._variants(self.first[0]))
        candidates = int(min(self.most, len(first) + variants))
        beside = self._beside(first) if not self.guessed_again else []
        n_before = before + (candidates + len(beside)) * len(self.few)
        self.progress.last = self._last(candidates)
        self.progress.total = self.progress.done + n_before + self.progress.last

    def _last(self, candidates: int) -> int:
        """Trainings that follow when so many candidates have been tried."""
        finalists, folds = min(_FINALISTS, candidates), len(self.members.folds)
        left_out = len(self.left_out) if finalists > 1 else 0
        # Φ_U, and what judges f_S if there is more than one fold.
        return finalists * (folds - len(self.few) + left_out) + 2 * folds - (folds == 1)

    def _beside(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those beside which Û is learned again."""
        if self.most <= len(self.first) or self.members.n_domains < 2:
            return []
        return [candidate for candidate in candidates if not candidate.balance]

    def _offered(self) -> list[Candidate]:
        return [candidate for candidate in self.first if self.members.offers(candidate.view)]

    def _variants(self, best: Candidate) -> list[Candidate]:
        return variants(best, self.members.name, self.members.shape, self.members.goal)

    def run(self) -> SearchResult:
        """Search, and return the best."""
        with self.progress:
            return self._run()

    def _run(self) -> SearchResult:
        self._announce(self.first, before=len(self.members.folds))
        self._believe(first_guess(self.members, self.progress))
        self._announce(self._offered())
        self._try(self._offered())
        second = self._second_guess()
        if second is not None:
            self._believe(second)
            name = hashlib.sha256(second.tobytes()).hexdigest()[:8]
            self.members, self.tried = self.members.saved_in(f"second guess {name}"), []
            self._announce(self._offered())
            self._try(self._offered())
        members = self.members
        self._try(self._variants(self._ranked()[0].candidate))
        finalists = self._ranked()[:_FINALISTS]
        done = sum(len(tried.networks) - len(self.few) for tried in finalists)  # one had all for a guess
        self.progress.total = self.progress.done + self._last(len(self.tried)) - done
        for tried in finalists:
            self._train(tried, range(len(members.folds)))
            if len(finalists) > 1:
                self._leave_out(tried)
        best = min(finalists, key=self._worse)
        for k, network in best.networks.items():
            best.history += members.learn_unstable(network, k, best.candidate)
            self.progress.step("unstable part")
        return self._found(best)

    def _believe(self, guess: np.ndarray) -> None:
        """Take Û for granted: weights of the rows, and views that hide it."""
        self.guess, members = guess, self.members
        self.weight = balancing_weights(members.y, guess, members.domain)
        members.find_views(guess)

    def _second_guess(self) -> np.ndarray | None:
        """Û anew beside an f_S, which says already what is stable; None if the first one was as good."""
        self.guessed_again = True
        folds = range(len(self.members.folds))
        beside = self._beside([tried.candidate for tried in self.tried])
        best, again = None, 2 * len(folds) - len(self.few)
        if not self.progress.late((len(beside) + len(self.tried)) * len(self.few) + again):
            best = self._best_beside([tried for tried in self.tried if tried.candidate in beside])
        if best is None:
            return None
        self.progress.expect(again)
        self._train(best, folds)
        guess, _ = self._guess_beside(best, folds)
        same = (guess == self.guess).mean()
        return guess if self._as_good(guess) and same < _THE_SAME else None

    def _best_beside(self, beside: Sequence[_Tried]) -> _Tried | None:
        """Return the view beside which to guess again, if there is one.

        An f_S that is no better than chance where the first guess says nothing has taken the unstable part,
        and so has one beside which a guess is clearly less often right, or less unequally often in the
        domains. Of the others the best. Where a guess is right more often beside f_S than the first, and more
        unequally often, the first had read a little of what f_S rightly reads: f_S is then judged where the
        new one says nothing.
        """
        best, lowest = None, math.inf
        for tried in beside:
            if self._score(tried) >= self._chance(tried):
                self.progress.expect(-len(self.few))
                continue
            guess, rows = self._guess_beside(tried, self.few)
            if not self._as_good(guess, rows):
                continue
            purer = self._as_good(guess, rows, least=1.0)
            risk = self._risk_without(guess, rows, tried) if purer else self._score(tried)
            if risk < lowest:
                best, lowest = tried, risk
        return best

    def _risk_without(self, guess: np.ndarray, rows: np.ndarray, tried: _Tried) -> float:
        """Risk on held-out rows on which this guess says nothing."""
        members = self.members
        weight = balancing_weights(members.y[rows], guess[rows], members.domain[rows])
        return float(np.average(np.concatenate([tried.losses[k] for k in self.few]), weights=weight))

    def _chance(self, tried: _Tried) -> float:
        """Risk of the class shares of each domain, on the rows of a candidate's score."""
        rows = self._held(tried)
        log_prior = self.members.source(rows).log_prior().double().cpu().numpy()
        losses = -log_prior[self.members.domain[rows], self.members.y[rows]]
        return float(np.average(losses, weights=self.weight[rows]))

    def _as_good(
        self, guess: np.ndarray, rows: np.ndarray | slice = slice(None), least: float = _AS_GOOD
    ) -> bool:
        """Whether a guess is right about as often as the present one, and about as unequally often."""
        y = self.members.y[rows]
        chance = 1.0 / len(np.unique(y))
        right, before = (balanced_accuracy_score(y, said[rows]) - chance for said in (guess, self.guess))
        unequal, unequal_before = (self._difference(said, rows) for said in (guess, self.guess))
        return bool(right >= least * before and unequal >= least * unequal_before)

    def _guess_beside(self, tried: _Tried, folds: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Û of the rows held out of some folds, beside these folds' f_S, and which rows these are."""
        members, guess = self.members, self.guess.copy()
        for k in folds:
            network = copy.deepcopy(tried.networks[k])
            members.learn_unstable(network, k, tried.candidate, briefly=True)
            rows = members.named(k)
            guess[rows] = guess_classes(network, members.source(rows))
            self.progress.step(f"guess beside {tried.candidate}")
        return guess, np.concatenate([members.folds[k].held for k in folds])

    def _difference(self, guess: np.ndarray, rows: np.ndarray | slice = slice(None)) -> float:
        members = self.members
        return difference_between_domains(members.y[rows], guess[rows], members.domain[rows])

    def _try(self, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            if self.tried and len(self.tried) >= self.most:
                return
            self.progress.last = self._last(len(self.tried) + 1)
            if self.tried and self.progress.late():
                self.progress.expect(-len(self.few))
                continue
            tried = _Tried(candidate)
            try:
                self._train(tried, self.few)
            except TrainingDivergedError:  # an answer about this candidate, unless there is no other
                if not self.tried:
                    raise
                self.progress.expect(len(tried.networks) - len(self.few))
                continue
            self.tried.append(tried)

    def _train(self, tried: _Tried, folds: Sequence[int]) -> None:
        for k in folds:
            if k in tried.networks:
                continue
            began = time.monotonic()
            network = self.members.build(tried.candidate, k)
            tried.history += self.members.learn_stable(network, k, tried.candidate, self.guess, self.weight)
            held = self.members.source(self.members.folds[k].held)
            logits = stable_logits(network, held.x)
            tried.networks[k] = network
            tried.losses[k] = row_losses(logits, held.target).double().cpu().numpy()
            tried.right[k] = (logits.argmax(1) == held.target.argmax(1)).cpu().numpy()
            tried.seconds += time.monotonic() - began
            self.progress.step(str(tried.candidate))

    def _leave_out(self, tried: _Tried) -> None:
        """Train without some domains, as many times as it takes to score every one."""
        began, risks = time.monotonic(), []
        for domains in self.left_out:
            self.progress.step(f"{tried.candidate}, left out")
            others = self.members.without(domains)
            if others is None:
                continue
            members, rows = others
            network = members.build(tried.candidate, 0)
            members.learn_stable(network, 0, tried.candidate, self.guess[rows], self.weight[rows])
            for name in domains:
                there = self.members.source(np.flatnonzero(self.members.domain == name))
                losses = row_losses(stable_logits(network, there.x), there.target)
                risks.append(float(losses.mean()))
        tried.left_out = float(np.mean(risks)) if risks else math.nan
        tried.seconds += time.monotonic() - began

    def _worse(self, tried: _Tried) -> float:
        """The worse of the risk where the guess says nothing and that in domains left out, if there are."""
        return float(np.fmax(self._score(tried), tried.left_out))

    def _ranked(self) -> list[_Tried]:
        return sorted(self.tried, key=self._score)

    def _held(self, tried: _Tried) -> np.ndarray:
        return np.concatenate([self.members.folds[k].held for k in tried.losses])

    def _score(self, tried: _Tried) -> float:
        """Risk on held-out rows on which the guess says nothing."""
        losses = np.concatenate(list(tried.losses.values()))
        return float(np.average(losses, weights=self.weight[self._held(tried)]))

    def _stopped_elsewhere(self, best: _Tried) -> np.ndarray | None:
        """Logits of the held-out rows by networks like the best that other rows have stopped."""
        others = self.members.stopped_elsewhere()
        if others is None:
            return None
        said = []
        for k, fold in enumerate(self.members.folds):
            network = others.build(best.candidate, k)
            others.learn_stable(network, k, best.candidate, self.guess, self.weight)
            said.append(stable_logits(network, self.members.source(fold.held).x).double().cpu().numpy())
            self.progress.step("verification")
        return np.concatenate(said)

    def _found(self, best: _Tried) -> SearchResult:
        networks = [best.networks[k] for k in range(len(self.members.folds))]
        align_unstable(networks)
        held = [fold.held for fold in self.members.folds]
        every = [stable_logits(network, self.members.x).double().cpu().numpy() for network in networks]
        with torch.no_grad():
            unstable = [
                network.unstable_features(self.members.source(rows).x).double().cpu().numpy()
                for network, rows in zip(networks, held, strict=True)
            ]
        own = np.concatenate([said[rows] for said, rows in zip(every, held, strict=True)])
        others, stretch = self._stopped_elsewhere(best), stretch_of_mean(np.array(every), held)
        return SearchResult(
            network=mean_network(networks, stretch),
            architecture={
                "members": len(networks),
                "stable": best.candidate.settings(),
                "unstable": self.members.guess_candidate().settings(),
            },
            rows=self.order[self._held(best)],
            logits=own if others is None else _as_sure_as(own, others),
            stretch=stretch,
            unstable=np.concatenate(unstable),
            guess=self.guess[self._held(best)],
            table=[self._line(best, chosen=True)]
            + [self._line(tried, chosen=False) for tried in self._ranked() if tried is not best],
            history=best.history,
        )

    def _line(self, tried: _Tried, *, chosen: bool) -> dict[str, Any]:
        rows = self._held(tried)
        right, agree = np.concatenate(list(tried.right.values())), self.guess[rows] == self.members.y[rows]
        return {
            "candidate": str(tried.candidate),
            "chosen": chosen,
            "risk": self._score(tried),
            "risk_left_out": None if math.isnan(tried.left_out) else tried.left_out,
            "accuracy_guess_right": float(right[agree].mean()) if agree.any() else math.nan,
            "accuracy_guess_wrong": float(right[~agree].mean()) if not agree.all() else math.nan,
            "folds": len(tried.losses),
            "seconds": tried.seconds,
        }


def _as_sure_as(wanted: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Logits of networks that learned from fewer rows, with the spread of those that predict.

    Examples
    --------
    >>> own, others = np.array([[-2.0, 2.0], [2.0, -2.0]]), np.array([[-1.0, 1.0], [1.0, -1.0]])
    >>> _as_sure_as(own, others).tolist()
    [[-2.0, 2.0], [2.0, -2.0]]
    """
    spreads = [float((said - said.mean(axis=1, keepdims=True)).std()) for said in (wanted, logits)]
    return logits * (spreads[0] / spreads[1] if min(spreads) > 0.0 else 1.0)


def read_budget(budget: float | str) -> tuple[float, float]:
    """Return the most candidates and the most seconds.

    Examples
    --------
    >>> read_budget(4), read_budget("90 s"), read_budget("auto")
    ((4, inf), (inf, 90.0), (inf, inf))
    """
    if budget == "auto":
        return math.inf, math.inf
    if isinstance(budget, str) and budget.endswith("s"):
        try:
            return math.inf, float(budget.removesuffix("s"))
        except ValueError:
            pass
    if isinstance(budget, (int, float)) and budget >= 0:
        return budget, math.inf
    raise ValueError(
        "budget must be 'auto', a number of candidates (0: no search) or seconds as in '90 s', got "
        f"{budget!r}."
    )
