"""`fit_pooled_heads`: a head for each of many domains, by empirical Bayes.

θ_d ~ N(μ, Σ) over domains. Given μ and Σ each domain has the head that maximises its ℓ plus the log prior;
given the heads and their errors, μ and Σ are their mean and covariance (EM with Laplace's approximation). The
labelled training domains count as domains whose heads are known: with few new domains they say what is usual.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sfboost.adaptation.guard import SAMPLING_REACH
from sfboost.heads.objectives import log_proba_from_logits, n_logit_columns
from sfboost.marginal import floored_log, log_combine
from sfboost.marginal.probabilities import FloatArray, IntArray
from sfboost.pooling.batched import climb, curve, log_evidence
from sfboost.pooling.grouping import DomainStack, stacks
from sfboost.pooling.shares import shrunken_shares

_ROUNDS = 30
# Rows at a time, where each brings the covariance of its domain.
_BLOCK = 16384
# Relative change of the prior's spread at which rounds end.
_SETTLED = 0.01
# Domains' worth of a prior on Σ, and its size: heads of standardised features differ by about one.
_PRIOR_WORTH, _PRIOR_VARIANCE = 2.0, 1.0
# Of the mean head: a variance so large that a handful of domains decides.
_LOOSE = 25.0
# Domains that say what is usual beside those whose heads are wanted: ten times as many, within limits.
_FEWEST_OTHERS, _OTHERS = 50, 500


@dataclass(frozen=True, eq=False)
class PooledHeads:
    """Heads of many domains.

    Attributes
    ----------
    theta : array of shape (D, columns, d + 1)
        Of standardised features, intercept last.
    covariance : array of shape (D, P, P)
        Of each head, given the rows of its domain and the other domains.
    shares : array of shape (D, K)
        Class shares.
    gain : array of shape (D,)
        ℓ per row at the head.
    mean : array of shape (columns, d + 1)
        The head of a domain that nothing is known of.
    spread : array of shape (P, P)
        Σ, how heads differ between domains.
    sizes : integer array of shape (D,)
    n_rounds : int
    """

    theta: FloatArray
    covariance: FloatArray
    shares: FloatArray
    gain: FloatArray
    mean: FloatArray
    spread: FloatArray
    sizes: IntArray
    n_rounds: int

    def log_unstable(self, X: FloatArray, domain: IntArray) -> FloatArray:
        """Log f_U of rows; domain -1 is one that was not adapted to, and gets the mean head."""
        heads = np.concatenate([self.theta, self.mean[None]])
        logits = np.empty((len(X), heads.shape[1]))
        for column in range(heads.shape[1]):
            own = heads[domain, column]
            logits[:, column] = np.einsum("ij,ij->i", X, own[:, :-1]) + own[:, -1]
        return log_proba_from_logits(logits)

    def predict_log_proba(
        self,
        stable: FloatArray,
        X: FloatArray,
        domain: IntArray,
        leak: float | None = None,
        confusion: FloatArray | None = None,
    ) -> FloatArray:
        """Log Pr[Y | X_S, X_U] of rows of numbered domains.

        With a `leak` (and the confusion ε) f_U is drawn towards the class shares, row by row, by what that
        leak and the error of the head may be of it: few rows have no gain that could be judged as a whole.
        """
        log_unstable = self.log_unstable(X, domain)
        usual = self.sizes @ self.shares / self.sizes.sum()
        prior = np.concatenate([self.shares, usual[None]])[domain]
        if leak is not None:
            assert confusion is not None
            trust = self._trust(np.exp(log_unstable), prior, X, domain, leak, confusion)
            log_unstable = floored_log(prior + trust[:, None] * (np.exp(log_unstable) - prior))
        return log_combine(stable, log_unstable - floored_log(prior), np.ones(stable.shape[1]))

    def _trust(
        self,
        base: FloatArray,
        prior: FloatArray,
        X: FloatArray,
        domain: IntArray,
        leak: float,
        confusion: FloatArray,
    ) -> FloatArray:
        """The share of the way from the prior to f_U that survives."""
        tiny = np.finfo(np.float64).tiny
        moved = base - prior
        reach = np.maximum(np.abs(moved @ confusion.T).max(axis=1), tiny)
        by_logit = base * (moved - (base * moved).sum(axis=1, keepdims=True))
        by_logit = by_logit[:, -self.theta.shape[1] :]
        spreads = np.concatenate([self.covariance, self.spread[None]])
        variance = np.empty(len(base))
        for first in range(0, len(base), _BLOCK):
            rows = slice(first, first + _BLOCK)
            design = np.column_stack([X[rows], np.ones(len(X[rows]))])
            direction = (by_logit[rows, :, None] * design[:, None, :]).reshape(len(design), -1)
            variance[rows] = np.einsum("ip,ipq,iq->i", direction, spreads[domain[rows]], direction)
        error = np.sqrt(np.maximum(variance, 0.0)) / np.maximum((moved**2).sum(axis=1), tiny)
        return np.clip(1.0 - leak / reach - SAMPLING_REACH * error, 0.0, 1.0)

    def with_some_of(self, other: PooledHeads, domains: IntArray) -> PooledHeads:
        """The same with some heads of another fit."""
        theta, covariance, gain = self.theta.copy(), self.covariance.copy(), self.gain.copy()
        for mine, theirs in ((theta, other.theta), (covariance, other.covariance), (gain, other.gain)):
            mine[domains] = theirs[domains]
        return replace(self, theta=theta, covariance=covariance, gain=gain)

    @property
    def shrinkage(self) -> FloatArray:
        """How much of each head comes from the other domains: 0 none, 1 all; of shape (D,)."""
        own = np.trace(self.covariance, axis1=1, axis2=2)
        return np.clip(own / np.trace(self.spread), 0.0, 1.0)


def fit_pooled_heads(
    stable: FloatArray,
    X: FloatArray,
    domain: IntArray,
    n_domains: int | None = None,
    training: FloatArray | None = None,
    needed: IntArray | None = None,
    beside: IntArray | None = None,
) -> PooledHeads:
    """Heads of all domains at once.

    A domain of few rows says little of its own head, and all domains together say how heads differ: each head
    leans on the others by as much as its own rows leave open.

    Parameters
    ----------
    stable : array of shape (n, K)
        f_S.
    X : array of shape (n, d)
        Unstable features in units common to all domains, about standardised.
    domain : integer array of shape (n,)
        Number of the domain of each row.
    training : array of shape (T, columns, d + 1), optional
        Heads of labelled domains in the same units.
    needed : integer array, optional
        Numbers of the domains whose heads are wanted; by default all. Some others, drawn at random, say with
        them what is usual, and the rest get the mean head.
    beside : integer array, optional
        Numbers that these others are drawn from; by default all.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> domain = np.repeat(np.arange(50), 100)
    >>> y = rng.integers(0, 2, 5000)
    >>> f = np.where(rng.random(5000) < 0.8, y, 1 - y) * 0.6 + 0.2
    >>> slope = rng.normal(1.0, 0.3, 50)[domain]
    >>> X = ((2 * y - 1) * slope + rng.normal(size=5000)).reshape(-1, 1)
    >>> heads = fit_pooled_heads(np.column_stack([1 - f, f]), X, domain)
    >>> heads.theta.shape, bool(1.6 < heads.mean[0, 0] < 2.4)
    ((50, 1, 2), True)

    References
    ----------
    .. [1] C. N. Morris (1983). Parametric Empirical Bayes Inference: Theory and Applications. Journal of the
       American Statistical Association 78.
    """
    n_domains = int(domain.max()) + 1 if n_domains is None else n_domains
    columns, width = n_logit_columns(stable.shape[1]), X.shape[1] + 1
    size = columns * width
    shares = shrunken_shares(stable, domain, n_domains)
    learned = np.arange(n_domains)
    if needed is not None:
        others = np.setdiff1d(learned if beside is None else beside, needed)
        others = np.random.default_rng(0).permutation(others)
        learned = np.union1d(needed, others[: min(_OTHERS, max(_FEWEST_OTHERS, 10 * len(needed)))])
    parts = stacks(stable, X, domain, n_domains, learned)
    evidence = [log_evidence(part, shares[part.domains]) for part in parts]
    known = np.empty((0, size)) if training is None else training.reshape(len(training), size)
    mean = known.mean(axis=0) if len(known) else np.zeros(size)
    spread = _PRIOR_VARIANCE * np.eye(size) + (np.cov(known.T) if len(known) > 1 else 0.0)
    theta = np.tile(mean, (n_domains, 1))
    if not len(known):  # nothing says where to begin: one head for all
        theta[:] = mean = _one_head(parts, evidence, size)
    covariance, gain = np.zeros((n_domains, size, size)), np.zeros(n_domains)
    for n_rounds in range(1, _ROUNDS + 1):
        precision = np.linalg.inv(spread)
        for part, weights in zip(parts, evidence, strict=True):
            found = climb(part, weights, theta[part.domains], mean, precision, 12 if n_rounds == 1 else 2)
            theta[part.domains], covariance[part.domains], gain[part.domains] = found
        new_mean, new_spread = _hyper(theta[learned], covariance[learned], known, spread)
        change = np.abs(new_spread - spread).max() / np.abs(new_spread).max()
        mean, spread = new_mean, new_spread
        if change < _SETTLED:
            break
    sizes = np.bincount(domain, minlength=n_domains)
    unseen = np.setdiff1d(np.arange(n_domains), learned)
    theta[unseen], covariance[unseen] = mean, spread
    shape = (columns, width)
    return PooledHeads(
        theta.reshape(n_domains, *shape),
        covariance,
        shares,
        gain / np.maximum(sizes, 1),
        mean.reshape(shape),
        spread,
        sizes,
        n_rounds,
    )


def _hyper(
    theta: FloatArray, covariance: FloatArray, known: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of heads over domains, their errors included."""
    size = theta.shape[1]
    every = np.concatenate([theta, known])
    loose = np.linalg.inv(np.linalg.inv(spread) * len(every) + np.eye(size) / _LOOSE)
    mean = loose @ np.linalg.inv(spread) @ every.sum(axis=0)
    away = every - mean
    scatter = away.T @ away + covariance.sum(axis=0) + _PRIOR_WORTH * _PRIOR_VARIANCE * np.eye(size)
    return mean, scatter / (len(every) + _PRIOR_WORTH)


def _one_head(parts: list[DomainStack], evidence: list[FloatArray], size: int) -> FloatArray:
    """The head of all rows together, from Newton steps on their sums."""
    theta = np.zeros(size)
    for _ in range(20):
        gradient, hessian = 1e-3 * theta, 1e-3 * np.eye(size)
        for part, weights in zip(parts, evidence, strict=True):
            found = curve(part, weights, np.tile(theta, (len(part.domains), 1)))
            gradient = gradient + found.gradient.sum(axis=0)
            hessian = hessian + found.hessian.sum(axis=0)
        values, vectors = np.linalg.eigh(hessian)
        # Where ℓ bends the wrong way, a step along the gradient of about the right length.
        step = vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), 1e-3 * np.abs(values).max()))
        theta = theta - step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-3:
            break
    return theta
