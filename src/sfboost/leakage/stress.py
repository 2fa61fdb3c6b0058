"""Stress domains: labelled training rows resampled until the unstable features mean something else.

An adaptation is chosen honestly by adapting, with labels hidden, to domains that look like the feared test
domain. Training rows resampled by (Y, Û), where Û is the class that the unstable features suggest, give
such domains at any agreement Pr[Û = Y]. No test label is needed. Limit: only shifts in how Û goes with Y
are imitated.

Û is the class whose probability the unstable features raise most above its share, the likeliest class where
all are equally frequent. The likeliest one itself would name a rare class seldom or never, however much the
features say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sfboost.marginal.probabilities import FloatArray, IntArray

Adapter = Callable[[FloatArray, Any], FloatArray]

AGREEMENTS = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True, eq=False)
class StressDomain:
    """Rows that together have the wanted agreement.

    Attributes
    ----------
    agreement : float
        Pr[Û = Y] in these rows.
    rows : array of int
        Positions in the labelled rows, none twice.
    """

    agreement: float
    rows: IntArray


def domain_heads(X_unstable: Any, y: IntArray, domain: npt.NDArray[Any]) -> list[Any]:
    """Fit one logistic head on the unstable features per training domain (the h_U^e of Eq. 5.1).

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[-1.0], [1.0], [-1.0], [1.0]]), np.array([0, 1, 1, 0])
    >>> heads = domain_heads(X, y, np.array([0, 0, 1, 1]))
    >>> [int(head.predict([[1.0]])[0]) for head in heads]
    [1, 0]
    """
    heads = []
    for name in np.unique(domain):
        rows = domain == name
        if len(np.unique(y[rows])) < 2:
            raise ValueError(
                f"Domain {name} has one class only, so it does not show what the unstable "
                "features mean there. "
                "Leave it out, or pass more of its rows."
            )
        heads.append(make_pipeline(StandardScaler(), LogisticRegression()).fit(X_unstable[rows], y[rows]))
    return heads


def unstable_guess(X_unstable: Any, y: Any, domain: Any) -> npt.NDArray[Any]:
    """Return Û: the class that the unstable features suggest, by the head of the domain where it is surest.

    Parameters
    ----------
    X_unstable : array of shape (n, d)
        Unstable features of labelled rows.
    y, domain : arrays of shape (n,)
        Labels and domains.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    >>> unstable_guess(X, np.array(["a", "b", "a", "b"]), np.zeros(4)).tolist()
    ['a', 'b', 'a', 'b']
    """
    X, y, domain = np.asarray(X_unstable, dtype=np.float64), np.asarray(y), np.asarray(domain)
    scores, guesses = [], []
    for name, head in zip(np.unique(domain), domain_heads(X, y, domain), strict=True):
        here = domain == name
        shares = np.array([(y[here] == c).mean() for c in head.classes_])
        with np.errstate(divide="ignore"):  # a class that is ruled out is not named
            raised = head.predict_log_proba(X) - np.log(shares)
        guesses.append(head.classes_[raised.argmax(axis=1)])
        # Each class counts once: always naming the frequent one is no sureness.
        scores.append(recall_score(y[here], guesses[-1][here], average="macro"))
    return np.asarray(guesses[int(np.argmax(scores))])


def stress_domains(
    y: Any,
    guess: Any,
    *,
    agreements: Sequence[float] = AGREEMENTS,
    n_rows: int | None = None,
    random_state: int = 0,
) -> list[StressDomain]:
    """Resample labelled rows, without replacement, to domains of the wanted agreements.

    Leave out rows where the unstable features are right, and they are wrong more often: a domain with
    another meaning, made of rows whose labels are known.

    The class shares stay as they are; among rows with Û ≠ Y the wrong guesses keep their shares.

    Parameters
    ----------
    y : array of shape (n,)
        Labels.
    guess : array of shape (n,)
        Û, see `unstable_guess`.
    agreements : sequence of float
        Wanted Pr[Û = Y].
    n_rows : int, optional
        Rows per domain; the most there are if None or if there are fewer.
    random_state : int
        Seed of the draws.

    Returns
    -------
    list of StressDomain

    Examples
    --------
    >>> import numpy as np
    >>> y = np.tile([0, 1], 200)
    >>> guess = np.where(np.arange(400) < 340, y, 1 - y)
    >>> domain = stress_domains(y, guess, agreements=[0.25])[0]
    >>> float((guess[domain.rows] == y[domain.rows]).mean())
    0.25

    References
    ----------
    .. [1] S. Sagawa, P. W. Koh, T. B. Hashimoto and P. Liang (2020). Distributionally Robust Neural
       Networks for Group Shifts. ICLR. (Groups of label and spurious feature.)
    """
    y, guess = np.asarray(y), np.asarray(guess)
    rng = np.random.default_rng(random_state)
    classes, counts = np.unique(y, return_counts=True)
    shares = counts / len(y)
    domains = []
    for agreement in agreements:
        if not 0 <= agreement <= 1:
            raise ValueError(f"An agreement is a probability, Pr[guess = y]; got {agreement}.")
        wanted = [
            (c, right, p * (agreement if right else 1 - agreement))
            for c, p in zip(classes, shares, strict=True)
            for right in (True, False)
        ]
        cells = [(np.flatnonzero((y == c) & ((guess == y) == right)), share) for c, right, share in wanted]
        largest = min(len(rows) / share for rows, share in cells if share > 0)
        total = largest if n_rows is None else min(largest, float(n_rows))
        drawn = [rng.choice(rows, round(total * share), replace=False) for rows, share in cells if share > 0]
        chosen = np.concatenate(drawn)
        if len(chosen) < 2 * len(classes):
            raise ValueError(
                f"Only {len(chosen)} rows can be brought to agreement {agreement}: some class "
                "never (or always) has "
                "the guess of its own name. Leave this agreement out, or pass more labelled rows."
            )
        domains.append(StressDomain(float(agreement), np.sort(chosen)))
    return domains


@dataclass(frozen=True, eq=False)
class StressTable:
    """How each candidate did on each stress domain.

    Attributes
    ----------
    names : tuple of str
        The candidates.
    agreements : tuple of float
        Of the stress domains.
    accuracy, log_loss : arrays of shape (candidates, domains)
    """

    names: tuple[str, ...]
    agreements: tuple[float, ...]
    accuracy: FloatArray
    log_loss: FloatArray


def stress_test(
    candidates: Mapping[str, Adapter],
    stable_proba: Any,
    X_unstable: Any,
    y: Any,
    domains: Sequence[StressDomain],
) -> StressTable:
    """Adapt every candidate blind to every stress domain, then score it with the labels.

    Parameters
    ----------
    candidates : mapping of str to callable
        ``adapter(stable_proba, X_unstable)`` returns probabilities of shape (n, K) for the same rows.
    stable_proba : array of shape (n, K)
        Stable probabilities of the labelled rows.
    X_unstable : array of shape (n, d)
        Their unstable features.
    y : integer array of shape (n,)
        Class positions 0..K-1.
    domains : sequence of StressDomain
        See `stress_domains`.

    Returns
    -------
    StressTable

    Examples
    --------
    >>> import numpy as np
    >>> y = np.tile([0, 1], 200)
    >>> guess = np.where(np.arange(400) < 340, y, 1 - y)
    >>> proba = np.full((400, 2), 0.5)
    >>> table = stress_test({"stable": lambda p, X: p, "trust": lambda p, X: np.eye(2)[X[:, 0]] * 0.9 + 0.05},
    ...                     proba, guess[:, None], y, stress_domains(y, guess, agreements=[0.9]))
    >>> table.names[table.accuracy.mean(axis=1).argmax()]
    'trust'
    """
    stable, X, y = np.asarray(stable_proba, dtype=np.float64), np.asarray(X_unstable), np.asarray(y)
    if not candidates or not domains:
        raise ValueError("A stress test needs at least one candidate and one stress domain.")
    accuracy = np.empty((len(candidates), len(domains)))
    log_loss = np.empty_like(accuracy)
    for i, adapter in enumerate(candidates.values()):
        for j, domain in enumerate(domains):
            rows = domain.rows
            proba = np.asarray(adapter(stable[rows], X[rows]))
            accuracy[i, j] = (proba.argmax(axis=1) == y[rows]).mean()
            log_loss[i, j] = -np.log(np.maximum(proba[np.arange(len(rows)), y[rows]], 1e-12)).mean()
    return StressTable(tuple(candidates), tuple(d.agreement for d in domains), accuracy, log_loss)
