"""Is f_S stable? What rows that it was not trained on say, before it is trusted in a new domain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, norm

from sfboost.diagnostics.result import p_in_words
from sfboost.diagnostics.unstable_guess import unstable_guess
from sfboost.marginal.probabilities import FloatArray
from sfboost.torch.rows import balancing_weights

# A domain where the unstable features mean the opposite may cost f_S at most so much accuracy.
_MOST = 0.2
_ONE_SIDED, _ALIKE = 1.64, 0.05
_FEWEST = 10
# Nats by which f_S may be wrong about its own risk in a domain, and the level at which that is seen.
_MOST_MISJUDGED, _LEVEL = 0.03, 0.01


@dataclass(frozen=True, eq=False)
class Verification:
    """What held-out labelled rows say about f_S.

    Attributes
    ----------
    domains : tuple
    risk, risk_error : arrays of shape (domains,)
        Log loss of f_S in each domain, and its standard error.
    misjudged, misjudged_error : arrays of shape (domains,)
        Log loss less the one that f_S itself expects: about zero in every domain if Pr[Y | X_S] is the same.
    accuracy_right, accuracy_wrong : float
        Accuracy of f_S where the class Û that Φ_U suggests is the label, and where it is
        not; each class counts with its share. f_S names the class that it raises most above its share, as Û
        does: one that names the frequent class in every row would show nothing.
    gap_error : float
        Standard error of their difference.
    n_wrong : int
        Rows on which Û is wrong.
    p_alike : float
        Of the test whether what Φ_U suggests is right equally often in all domains.
    gain, gain_error : float
        Nats by which f_S beats the class shares in a domain where Φ_U says nothing, and the standard error.
    """

    domains: tuple[Any, ...]
    risk: FloatArray
    risk_error: FloatArray
    misjudged: FloatArray
    misjudged_error: FloatArray
    accuracy_right: float
    accuracy_wrong: float
    gap_error: float
    n_wrong: int
    p_alike: float
    gain: float
    gain_error: float

    @property
    def gap(self) -> float:
        """What f_S loses between domains in which Û is always right and never right."""
        return self.accuracy_right - self.accuracy_wrong

    @property
    def same_in_all_domains(self) -> bool:
        """Whether no domain is seen to contradict f_S by 0.03 nats of log loss (1 % in all)."""
        limit = norm.isf(_LEVEL / 2 / len(self.domains)) * self.misjudged_error
        return not (np.abs(self.misjudged) > np.maximum(limit, _MOST_MISJUDGED)).any()

    @property
    def domains_differ(self) -> bool:
        """Whether Φ_U is seen to mean something else in some training domain (5 %).

        Two features that are independent given the label can change places: only a difference between
        domains shows which of them is the unstable one.
        """
        return self.p_alike < _ALIKE

    @property
    def says_something(self) -> bool:
        """Whether f_S is shown to beat the class shares where Φ_U says nothing (one-sided 5 %)."""
        return self.gain > _ONE_SIDED * self.gain_error

    @property
    def stable(self) -> bool:
        """Whether f_S is shown to lose no more than 20 points where Φ_U turns round (one-sided 5 %).

        And no training domain contradicts it, some training domain contradicts Φ_U, and f_S says something
        without it.
        """
        small = bool(self.gap + _ONE_SIDED * self.gap_error <= _MOST)
        return self.same_in_all_domains and self.domains_differ and self.says_something and small

    @property
    def reason(self) -> str:
        """In one sentence."""
        if not self.same_in_all_domains:
            k = int(np.argmax(np.abs(self.misjudged) / self.misjudged_error))
            return (
                f"in training domain {self.domains[k]!r} the log loss of f_S on held-out rows is "
                f"{self.misjudged[k]:+.3f} ± {self.misjudged_error[k]:.3f} nats from what f_S itself "
                "expects: its relation to the label is not the same in all domains"
            )
        if not math.isfinite(self.gap_error):
            return (
                f"what Φ_U suggests is wrong in {self.n_wrong} held-out training rows, too few to show that "
                f"f_S is stable ({_FEWEST} of every class are needed)"
            )
        if not self.domains_differ:
            return (
                f"the {len(self.domains)} training domains hardly differ in how often Φ_U suggests the label "
                f"({p_in_words(self.p_alike)}), so that nothing shows which features are the stable ones"
            )
        if not self.says_something:
            return (
                f"where Φ_U says nothing f_S beats the class shares by {self.gain:.3f} ± "
                f"{self.gain_error:.3f} nats a row: it is not shown to say anything by itself"
            )
        shown = "shown to be less" if self.stable else "not shown to be less"
        return (
            f"f_S is right in {self.accuracy_right:.0%} of the held-out training rows in which Φ_U suggests "
            f"the label and in {self.accuracy_wrong:.0%} of those in which it does not, a difference of "
            f"{100 * self.gap:.0f} ± {100 * self.gap_error:.0f} points: {shown} than {100 * _MOST:.0f}"
        )

    def __str__(self) -> str:
        parts = zip(self.domains, self.risk, self.risk_error, strict=True)
        risks = [f"log loss in {name}: {risk:.3f} ± {error:.3f}" for name, risk, error in parts]
        return "\n".join([*risks, self.reason])


def verify(
    stable_proba: FloatArray,
    unstable: FloatArray,
    y: npt.NDArray[np.intp],
    domain: npt.NDArray[Any],
    guess: npt.NDArray[np.intp] | None = None,
) -> Verification:
    """Look at f_S on labelled rows that it was not trained on.

    Parameters
    ----------
    stable_proba : array of shape (n, K)
        f_S.
    unstable : array of shape (n, d)
        Φ_U.
    y : integer array of shape (n,)
        Class positions.
    domain : array of shape (n,)
    guess : integer array of shape (n,), optional
        Û; by default the class that Φ_U suggests.

    Examples
    --------
    A score that reads the colour, and one that does not:

    >>> rng = np.random.default_rng(0)
    >>> y, d = rng.integers(0, 2, 2000), np.repeat(["a", "b"], 1000)
    >>> colour = np.where(rng.random(2000) < np.where(d == "a", 0.9, 0.8), y, 1 - y)
    >>> shape = np.where(rng.random(2000) < 0.75, y, 1 - y)
    >>> [verify(np.eye(2)[seen] * 0.5 + 0.25, colour[:, None], y, d).stable for seen in (colour, shape)]
    [False, True]
    """
    names = np.unique(domain)
    log_proba = np.log(np.maximum(stable_proba, 1e-12))
    losses = -log_proba[np.arange(len(y)), y]
    surprise = losses + (stable_proba * log_proba).sum(axis=1)
    telling = np.isin(domain, [name for name in names if len(np.unique(y[domain == name])) > 1])
    suggested = y.copy()
    if telling.any():
        suggested[telling] = unstable_guess(unstable[telling], y[telling], domain[telling])
    # A guess that was found by how unequal it is cannot show that domains differ; what Φ_U suggests can. And
    # the guess may have read some of what f_S says, which would then look like nothing.
    guess = suggested if guess is None else guess
    shares = np.bincount(y, minlength=stable_proba.shape[1]) / len(y)
    gains = balancing_weights(y, suggested, domain) * (-np.log(shares[y]) - losses)
    right = (stable_proba / np.maximum(shares, 1e-12))[telling].argmax(axis=1) == y[telling]
    agree = (guess == y)[telling]
    accuracy, variance = _by_class(right, y[telling], agree)
    (risk, risk_error), (misjudged, error) = (_means(values, domain) for values in (losses, surprise))
    return Verification(
        domains=tuple(names.tolist()),
        risk=risk,
        risk_error=risk_error,
        misjudged=misjudged,
        misjudged_error=error,
        accuracy_right=accuracy[0],
        accuracy_wrong=accuracy[1],
        gap_error=math.sqrt(variance),
        n_wrong=int((~agree).sum()),
        p_alike=_p_alike(y[telling], suggested[telling], domain[telling]),
        gain=float(gains.mean()),
        gain_error=float(gains.std() / math.sqrt(len(y))),
    )


def _means(values: FloatArray, domain: npt.NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Mean and standard error in each domain."""
    parts = [values[domain == name] for name in np.unique(domain)]
    errors = [np.sqrt((part.var() + 1e-6) / len(part)) for part in parts]
    return np.array([part.mean() for part in parts]), np.array(errors)


def _share(rows: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """How often rows are true, and the variance of that.

    With one row more of each kind: a share of 0 or 1 in few rows is not known without error.
    """
    p = (rows.sum() + 1) / (len(rows) + 2)
    return float(rows.mean()), float(p * (1 - p) / len(rows))


def _p_alike(y: npt.NDArray[np.intp], guess: npt.NDArray[np.intp], domain: npt.NDArray[Any]) -> float:
    """Chi-square test that a guess is right equally often in all domains, with classes at their shares."""
    names, shares = np.unique(domain), np.bincount(y) / len(y)
    if len(names) < 2:
        return 1.0
    found = []
    for name in names:
        labels = np.unique(y[domain == name])
        weight = shares[labels] / shares[labels].sum()
        parts = np.array([_share((guess == y)[(domain == name) & (y == label)]) for label in labels])
        found.append((weight @ parts[:, 0], weight**2 @ parts[:, 1]))
    means, variances = np.array(found).T
    distance = (means - np.average(means, weights=1.0 / variances)) ** 2 @ (1.0 / variances)
    return float(chi2.sf(distance, len(names) - 1))


def _by_class(
    right: npt.NDArray[np.bool_], y: npt.NDArray[np.intp], agree: npt.NDArray[np.bool_]
) -> tuple[list[float], float]:
    """Accuracy where Û agrees and where not, with classes at their shares; variance of the difference."""
    accuracy, variance = [0.0, 0.0], 0.0
    for label, count in zip(*np.unique(y, return_counts=True), strict=True):
        for k, cell in enumerate((agree, ~agree)):
            rows = right[cell & (y == label)]
            if len(rows) < _FEWEST:
                return [math.nan, math.nan], math.inf
            mean, error = _share(rows)
            accuracy[k] += count / len(y) * mean
            variance += (count / len(y)) ** 2 * error
    return accuracy, variance
