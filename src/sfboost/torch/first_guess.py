"""The first guess Û of every row: what is easy to learn, and differs between the training domains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.ndimage import minimum_filter1d

from sfboost.torch.folds import difference_between_domains, row_losses, unstable_logits
from sfboost.torch.members import Look, Members
from sfboost.torch.progress import TrainingProgress
from sfboost.torch.rows import ArraySource
from sfboost.torch.split_network import SplitNetwork, guess_classes

# Chi-square by degree of freedom beyond which a guess is about something that differs between domains.
_DIFFERENT = 4.0


def first_guess(members: Members, progress: TrainingProgress) -> np.ndarray:
    """Name a class for every row by a network that did not see it (with a single fold: that saw four fifths).

    How long the networks are trained is found: after as many steps as make the guess right most unequally
    often in the training domains. Where they never differ beyond chance, after as many as make it best.

    Parameters
    ----------
    members : Members
    progress : TrainingProgress

    Returns
    -------
    array of int, one for each row
    """
    named = [members.named(k) for k in range(len(members.folds))]
    paths: list[list[tuple[float, np.ndarray]]] = []
    for k, fold in enumerate(members.folds):
        network = members.build(members.guess_candidate(), k)
        paths.append([])
        look = _looking(network, members.source(fold.held), members.source(named[k]), paths[-1])
        members.learn_guess(network, k, look)
        progress.step("first guess")
    held = np.concatenate([fold.held for fold in members.folds])
    guesses = []
    for i in range(min(map(len, paths))):
        guess = np.zeros(len(members.y), dtype=int)
        for rows, path in zip(named, paths, strict=True):
            guess[rows] = path[i][1]
        guesses.append(guess)
    risks = [float(np.mean([path[i][0] for path in paths])) for i in range(len(guesses))]
    y, domain = members.y[held], members.domain[held]
    differences = [difference_between_domains(y, guess[held], domain) for guess in guesses]
    return guesses[_moment(differences, risks)]


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


def _looking(
    network: SplitNetwork, held: ArraySource, seen: ArraySource, path: list[tuple[float, np.ndarray]]
) -> Look:
    def look() -> float:
        risk = float(row_losses(unstable_logits(network, held), held.target).mean())
        path.append((risk, guess_classes(network, seen)))
        return risk

    return look
