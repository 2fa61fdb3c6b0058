"""How good a classifier is here, without labels, and how sure a row is.

Confidence-based estimation (CBPE) takes a classifier's probabilities at their word, which is what fails
where features changed their meaning: it reports .9 where the truth is .1. Here the labels come from f_S
alone. Under the assumptions of Theorem 4.4 the vector ε⁻¹ f_S(x') is, on average, the one-hot label of the
row that x' is of, whatever its X_U. So for any g of the unstable features P(g = j, Y = ·) = ε⁻¹ E[f_S 1(g =
j)]; and for a g that reads both parts, X_S of one row is paired with X_U of another: given the label y,
which has the weight f_y(x) / p_y · [ε⁻¹ f(x')]_y, the two are independent, as they are within a row.

Prediction sets are conformal: their threshold is read off whole domains, each left out in turn and adapted
to without labels, so that "had not seen" means what it will mean in a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import norm

from sfboost.adaptation.costs import check_costs
from sfboost.adaptation.scores import Yardstick, scores_by_label, weighted_scores
from sfboost.marginal import PseudoLabelStatistics, as_probability_matrix
from sfboost.marginal.probabilities import BoolArray, FloatArray, IntArray

#: Probabilities of shape (m, K) for X_S of the rows `i` with X_U of the rows `k`.
PairPredictor = Callable[[IntArray, IntArray], FloatArray]
# Up to so many pairs of rows all are looked at; beyond, each row is paired with so many others.
_ALL_PAIRS, _PAIRINGS = 40_000, 10
_REPLICATES = 100
# Below this informativeness ε⁻¹ is noise.
_LEAST_INFORMATIVE = 0.02


@dataclass(frozen=True, eq=False)
class Performance:
    """Scores in a domain without labels.

    Attributes
    ----------
    value : mapping of str to float
        By score: accuracy, balanced_accuracy, log_loss, brier, auroc, ece and, if asked for, cost.
    lower, upper : mappings of str to float
        Ends of the intervals: sampling error, and the worst that a leak of `leak` can do.
    leak, level : float
    withheld : str
        Why there are no figures; empty if there are.
    source : str
        What the intervals rest on, if not on f_S alone.
    """

    value: Mapping[str, float]
    lower: Mapping[str, float]
    upper: Mapping[str, float]
    leak: float
    level: float
    withheld: str = ""
    source: str = ""

    @classmethod
    def around(
        cls,
        value: Mapping[str, float],
        reach: Mapping[str, float],
        leak: float,
        level: float,
        costs: FloatArray | None = None,
        source: str = "",
    ) -> Self:
        """Intervals of so far to either side; they and the values are within what each score can be."""
        ends = {name: (0.0, np.inf if name == "log_loss" else 1.0) for name in value}
        if costs is not None:
            ends["cost"] = (float(costs.min()), float(costs.max()))
        lower, upper = (
            {name: float(np.clip(value[name] + sign * reach[name], *ends[name])) for name in value}
            for sign in (-1.0, 1.0)
        )
        inside = {name: float(np.clip(value[name], *ends[name])) for name in value}
        return cls(inside, lower, upper, leak, level, source=source)

    def __str__(self) -> str:
        if self.withheld:
            return f"no figures: {self.withheld}"
        allowed = self.source or f"which allow for a leak of {self.leak:.3f}"
        lines = [f"{100 * self.level:.0f} % intervals, {allowed}"]
        for name, value in self.value.items():
            lines.append(f"{name:<18} {value:.3f}  ({self.lower[name]:.3f} to {self.upper[name]:.3f})")
        return "\n".join(lines)


def estimate_performance(
    stable_proba: Any,
    predict: PairPredictor,
    *,
    leak: float = 0.0,
    cost: Any = None,
    level: float = 0.9,
    sample_weight: Any = None,
    random_state: int = 0,
) -> Performance:
    """Estimate the scores of a classifier in the domain that the rows are of.

    Within a class, what the stable features say is independent of the unstable ones. So the stable parts of
    some rows, put together with the unstable parts of others, weigh how often the classifier meets each
    class, and no label is needed.

    Parameters
    ----------
    stable_proba : array-like of shape (n,) or (n, K)
        f_S of the rows: calibrated, and independent of X_U given the label.
    predict : callable
        ``predict(i, k)`` gives its probabilities for X_S of the rows `i` with X_U of the rows `k`.
    leak : float
        δ, how far E[f_S | y, u] may be from E[f_S | y]: the intervals allow for it.
    cost : array-like of shape (K, K), optional
        ``cost[y, j]`` of deciding j where the truth is y; decisions are those of the least expected cost.
    level : float
        Of the intervals.
    sample_weight : array-like of shape (n,), optional

    Examples
    --------
    Colour agrees with the label in 10 % of the rows, and a pooled classifier believes in 90 %:

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 4000)
    >>> stable = np.where(rng.random(4000) < 0.75, y, 1 - y) * 0.5 + 0.25
    >>> colour = np.where(rng.random(4000) < 0.1, y, 1 - y)
    >>> pooled = np.column_stack([1 - colour, colour]) * 0.8 + 0.1
    >>> round(confidence_based(pooled)["accuracy"], 2)
    0.9
    >>> round(estimate_performance(stable, lambda i, k: pooled[k]).value["accuracy"], 1)
    0.1

    References
    ----------
    .. [1] C. Eastwood, S. Singh, A. L. Nicolicioiu et al. (2023). Spuriosity Didn't Kill the Classifier:
       Using Invariant Predictions to Harness Spurious Features. NeurIPS 36, Theorem 4.4.
    """
    stable = as_probability_matrix(stable_proba)
    n_rows = len(stable)
    weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    costs = None if cost is None else check_costs(cost, stable.shape[1])
    statistics = PseudoLabelStatistics.from_proba(stable, weight)
    if statistics.informativeness < _LEAST_INFORMATIVE or (statistics.prior <= 0.0).any():
        reason = f"the stable predictor hardly tells the classes apart (s = {statistics.informativeness:.3f})"
        return Performance({}, {}, {}, leak, level, reason)
    rng = np.random.default_rng(random_state)
    i, k = _pairs(n_rows, rng)
    proba = as_probability_matrix(predict(i, k), n_classes=stable.shape[1], name="predict(i, k)")

    def scores(row_weight: FloatArray) -> dict[str, float]:
        label = _label_weights(stable, row_weight, i, k)
        return weighted_scores(proba, label, costs)

    value = scores(weight)
    # Rows drawn anew, by weights: that ε and the prior are estimates is in it.
    drawn = [scores(weight * rng.exponential(size=n_rows)) for _ in range(_REPLICATES)]
    z = float(norm.ppf(0.5 + level / 2.0))
    reach = {name: z * spread for name, spread in spreads(drawn).items()}
    if leak > 0.0:
        bias = _leak_reach(proba, stable, weight, i, k, leak, costs)
        reach = {name: size + bias[name] for name, size in reach.items()}
    return Performance.around(value, reach, leak, level, costs)


def gain_over_stable(
    stable: FloatArray,
    predict: PairPredictor,
    by: Yardstick,
    *,
    leak: float,
    weight: FloatArray,
    level: float,
) -> tuple[float, float] | None:
    """How much better a classifier is than f_S, and the lower limit at this level; None if f_S says nothing.

    As in `estimate_performance`, of which this is the difference of two: the errors that both share cancel.
    """
    statistics = PseudoLabelStatistics.from_proba(stable, weight)
    if statistics.informativeness < _LEAST_INFORMATIVE or (statistics.prior <= 0.0).any():
        return None
    rng = np.random.default_rng(0)
    i, k = _pairs(len(stable), rng)
    proba, base = predict(i, k), stable[i]

    def gain(row_weight: FloatArray) -> float:
        label = _label_weights(stable, row_weight, i, k)
        return by.loss(base, label) - by.loss(proba, label)

    drawn = [gain(weight * rng.exponential(size=len(stable))) for _ in range(_REPLICATES)]
    reach = float(norm.ppf(1.0 - level)) * float(np.nanstd(drawn))
    metric = {"auroc": "balanced_accuracy", "ece": "accuracy"}.get(by.metric, by.metric)
    label = _label_weights(stable, weight, i, k)
    added = [scores_by_label(one, label, by.costs, only=metric)[metric] for one in (proba, base)]
    worst = _worst_leak(added[0] - added[1], stable, weight, i, k, leak)
    return gain(weight), gain(weight) - reach - worst


def spreads(drawn: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Standard deviation of each score over draws in which it has a value; nan if it never has."""
    found = {name: np.array([scores[name] for scores in drawn]) for name in drawn[0]}
    return {
        name: float(np.nanstd(values)) if np.isfinite(values).any() else float("nan")
        for name, values in found.items()
    }


def confidence_based(proba: Any, cost: Any = None) -> dict[str, float]:
    """Scores as a classifier's own probabilities lead to expect (CBPE): right where they are calibrated.

    A row that is said to be of a class with 80 % is of another in two cases of ten.

    Examples
    --------
    >>> round(confidence_based([[0.2, 0.8], [0.9, 0.1]])["accuracy"], 2)
    0.85

    References
    ----------
    .. [1] J. Białek et al. (2024). Estimating Model Performance Under Covariate Shift Without Labels.
       arXiv:2401.08348.
    """
    own = as_probability_matrix(proba)
    return weighted_scores(own, own / len(own), None if cost is None else check_costs(cost, own.shape[1]))


def _pairs(n_rows: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows to take X_S from, and rows to take X_U from."""
    every = np.arange(n_rows)
    if n_rows**2 <= _ALL_PAIRS:
        return np.repeat(every, n_rows), np.tile(every, n_rows)
    return np.tile(every, _PAIRINGS), np.concatenate([rng.permutation(n_rows) for _ in range(_PAIRINGS)])


def _label_weights(stable: FloatArray, weight: FloatArray, i: IntArray, k: IntArray) -> FloatArray:
    """Weight of each class as the label of each pair: f(x) / p · ε⁻¹ f(x'), of shape (m, K)."""
    statistics = PseudoLabelStatistics.from_proba(stable, weight)
    unbiased = np.linalg.solve(statistics.confusion, stable.T).T
    pair = weight[i] * weight[k]
    return (pair / pair.sum())[:, None] * stable[i] / statistics.prior * unbiased[k]


def _leak_reach(
    proba: FloatArray,
    stable: FloatArray,
    weight: FloatArray,
    i: IntArray,
    k: IntArray,
    leak: float,
    cost: FloatArray | None,
) -> dict[str, float]:
    """The most that a leak of δ can move each score.

    AUROC and ECE are no means over rows; they get the reach of balanced accuracy and of accuracy.
    """
    label = _label_weights(stable, weight, i, k)
    reach = {
        name: _worst_leak(added, stable, weight, i, k, leak)
        for name, added in scores_by_label(proba, label, cost).items()
    }
    return reach | {"auroc": reach["balanced_accuracy"], "ece": reach["accuracy"]}


def _worst_leak(
    added: FloatArray, stable: FloatArray, weight: FloatArray, i: IntArray, k: IntArray, leak: float
) -> float:
    """How far a leak L(u, ·) of δ moves a mean over rows: ε⁻¹ f moves by ε⁻¹ L, pair by pair the worst."""
    statistics = PseudoLabelStatistics.from_proba(stable, weight)
    pair = weight[i] * weight[k]
    evidence = (pair / pair.sum())[:, None] * stable[i] / statistics.prior
    slope = np.linalg.solve(statistics.confusion.T, (evidence * added).T).T
    # L sums to zero over the classes, and none of its entries is beyond δ.
    return leak * float(np.abs(slope - np.median(slope, axis=1, keepdims=True)).sum())


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """Sets of classes, calibrated on left-out domains.

    A class is in the set of a row if it is no more doubtful there than the true class was in nearly all rows
    with labels.

    Attributes
    ----------
    doubts : dict of arrays
        By left-out domain: one minus the probability that each row's true class got, in order.

    Notes
    -----
    The threshold for a coverage is the largest of those that the left-out domains need, one by one. So the
    sets cover as often as asked in every one of them. A new domain is covered as far as it is no harder
    than the hardest of these: with E domains that could come in any order, with probability E / (E + 1).
    Where probabilities take few values, as with two-valued features, a threshold may fall just short of one
    of them, and the coverage jumps.

    References
    ----------
    .. [1] M. Sadinle, J. Lei and L. Wasserman (2019). Least Ambiguous Set-Valued Classifiers With Bounded
       Error Levels. Journal of the American Statistical Association 114.
    .. [2] R. Dunn, L. Wasserman and A. Ramdas (2023). Distribution-Free Prediction Sets for Two-Layer
       Hierarchical Models. Journal of the American Statistical Association 118.
    """

    doubts: dict[str, FloatArray]

    @classmethod
    def calibrate(cls, proba: Any, y: Any, sample_domain: Any) -> PredictionSets:
        """From probabilities of rows of left-out domains.

        Parameters
        ----------
        proba : array-like of shape (n, K)
        y : integer array-like of shape (n,)
            Class positions 0..K-1.
        sample_domain : array-like of shape (n,)

        Examples
        --------
        >>> sets = PredictionSets.calibrate([[0.9, 0.1], [0.4, 0.6]], [0, 0], ["north", "north"])
        >>> sets.predict_set([[0.7, 0.3], [0.45, 0.55]], coverage=0.5)
        array([[ True, False],
               [ True,  True]])
        """
        given, label, domain = (
            as_probability_matrix(proba, name="proba"),
            np.asarray(y),
            np.asarray(sample_domain),
        )
        if label.shape != (len(given),) or domain.shape != (len(given),):
            raise ValueError(
                f"There are {len(given)} rows of probabilities, labels of shape {label.shape} and domains of "
                f"shape {domain.shape}: pass one of each for every row."
            )
        doubt = 1.0 - given[np.arange(len(given)), label.astype(np.intp)]
        return cls({str(name): np.sort(doubt[domain == name]) for name in dict.fromkeys(domain.tolist())})

    def thresholds(self, coverage: float) -> dict[str, float]:
        """The doubt up to which a class belongs to the set, as each left-out domain needs it."""
        if not isinstance(coverage, (int, float, np.floating)) or not 0.0 < coverage < 1.0:
            raise ValueError(
                f"coverage={coverage} is not a share: use a number between 0 and 1, such as 0.9."
            )
        needed = {}
        for name, doubt in self.doubts.items():
            place = int(np.ceil((len(doubt) + 1) * coverage)) - 1
            # Too few rows for so high a coverage: every class belongs to it.
            needed[name] = float(doubt[place]) if place < len(doubt) else 1.0
        return needed

    def predict_set(self, proba: Any, coverage: float = 0.9) -> BoolArray:
        """Whether each class belongs to the set of each row, of shape (n, K); the likeliest always does."""
        given = as_probability_matrix(proba, name="proba")
        inside = 1.0 - given <= max(self.thresholds(coverage).values()) + 1e-12
        inside[np.arange(len(given)), given.argmax(axis=1)] = True
        return inside
