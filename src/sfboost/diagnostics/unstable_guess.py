"""Û, the class that the unstable features suggest.

It is the class whose probability they raise most above its share, the likeliest class where all are equally
frequent. The likeliest one itself would name a rare class seldom or never, however much the features say.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sfboost.marginal.probabilities import IntArray


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
