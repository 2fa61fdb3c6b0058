"""Going through the stages of training: some networks start dead, so each is checked and started again."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from sfboost.torch.batches import Source
from sfboost.torch.building import chance_risk, guess_classes, reset_stable, reset_unstable, restart_seed
from sfboost.torch.plan import Plan
from sfboost.torch.split_network import SplitNetwork
from sfboost.torch.stages import Trial

_RESETS = {"stable": reset_stable, "unstable": reset_unstable}


class Course(ABC):
    """Goes through trials with one or more networks; a subclass says how an attempt is made.

    Parameters
    ----------
    networks, sources, seeds : sequences of the same length
        The members; networks are trained in place.
    plan : Plan

    Attributes
    ----------
    restarts_of : ndarray of shape (members,)
        How often each member's unstable part was started again.
    """

    def __init__(
        self, networks: Sequence[SplitNetwork], sources: Sequence[Source], seeds: Sequence[int], plan: Plan
    ) -> None:
        self.networks, self.sources, self.seeds, self.plan = networks, sources, seeds, plan
        self.restarts_of = np.zeros(len(networks), dtype=int)

    @abstractmethod
    def attempt(self, trial: Trial, number: int, members: Sequence[int]) -> list[float]:
        """Train these members through the phases; return the risk that each ends with."""

    @abstractmethod
    def stable_risks(self) -> list[float]:
        """Return the risk of each member's f_S."""

    def give_up(self, trial: Trial, baseline: float, best: float) -> None:  # noqa: B027
        """Take note of a member that no attempt has helped."""

    def follow(self, course: Sequence[Trial]) -> None:
        """Go through all trials."""
        for trial in course:
            if trial.name == "guess":
                self._balance(trial)
                continue
            restarts = self._restarted(trial) if trial.lowers else self._once(trial)
            if trial.name == "stable":
                for source in self.sources:
                    source.balance(None)
            elif trial.name == "unstable":
                self.restarts_of = restarts

    def _balance(self, trial: Trial) -> None:
        """Let Û, the guess of a Φ_U trained briefly, balance the rows; its weights are not kept."""
        start = self._states()
        self._restarted(trial)
        for network, source, state in zip(self.networks, self.sources, start, strict=True):
            source.balance(guess_classes(network, source))
            network.load_state_dict(state)

    def _once(self, trial: Trial) -> np.ndarray:
        self.attempt(trial, 0, range(len(self.networks)))
        return np.zeros(len(self.networks), dtype=int)

    def _restarted(self, trial: Trial) -> np.ndarray:
        """Train all, then those again whose risk is not below the baseline; the best attempt is kept."""
        without = self.stable_risks() if trial.lowers == "joint" else list(map(chance_risk, self.sources))
        restarts = np.zeros(len(self.networks), dtype=int)
        fresh = self._states()
        best: dict[int, tuple[float, dict[str, Tensor]]] = {}
        todo = list(range(len(self.networks)))
        for number in range(self.plan.max_restarts + 1):
            for i in todo if number else ():
                self.networks[i].load_state_dict(fresh[i])
                _RESETS[trial.anew](self.networks[i], restart_seed(self.seeds[i], number))
                restarts[i] = number
            risks = dict(zip(todo, self.attempt(trial, number, todo), strict=True))
            for i, risk in risks.items():
                if i not in best or risk < best[i][0]:
                    best[i] = (risk, copy.deepcopy(self.networks[i].state_dict()))
            todo = [i for i in todo if not risks[i] <= (1.0 - self.plan.min_gain) * without[i]]
            if not todo:
                break
        for i, (risk, state) in best.items():
            self.networks[i].load_state_dict(state)
            if i in todo:
                self.give_up(trial, without[i], risk)
        return restarts

    def _states(self) -> list[dict[str, Tensor]]:
        return [copy.deepcopy(network.state_dict()) for network in self.networks]
