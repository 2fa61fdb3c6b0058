"""Whether the stable features mean the same elsewhere, and the new rows are where training was.

Stability (Definition 4.1): P(Y | X_S) is the same in every training domain. Where it is not, P(X_S | Y) may
be: label shift. Class shares and places of rows may move; the sketches that tell keep no training row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import softmax
from scipy.stats import fisher_exact, norm
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from sfboost.diagnostics.moments import (
    holm_by_name,
    log_contrasts,
    principal_components,
    scaled,
    zero_mean_test,
)
from sfboost.diagnostics.result import CheckResult, Verdict, check, judge, p_in_words
from sfboost.diagnostics.rows import CheckInputs, TrainingRows
from sfboost.marginal import floored_log
from sfboost.marginal.probabilities import FloatArray

#: Difference of the residual risk between domains, as a probability: beyond it f_S is another one.
_NOTICEABLE_RISK = 0.03
_FEWEST_ROWS = 50
_MOST_STABLE = 5


@check("stability", "Do the stable features mean the same in every training domain?", "training")
def check_stability(inputs: CheckInputs) -> CheckResult:
    """Whether Y − f_S depends on the domain, given X_S: one robust test a domain, Holm over domains.

    The risk difference of a domain is its mean of Y − f_S (worst class) after the common part is removed.
    """
    training = inputs.labelled
    large = [(name, rows) for name, rows in training.by_domain if len(rows) >= _FEWEST_ROWS]
    if len(large) < 2:
        found = f"{len(large)} training domain(s) have {_FEWEST_ROWS} rows or more: two are needed."
        return CheckResult("stability", "cannot tell", found, "Pass rows of more training domains.")
    common = _CommonErrors.of(training)
    tests = {name: _domain_test(training, rows, common) for name, rows in large}
    adjusted = holm_by_name({name: test[0] for name, test in tests.items()})
    worst = max(tests, key=lambda name: tests[name][1])
    size, error = tests[worst][1], tests[worst][2]
    smallest = min(adjusted.values())
    details = {"p_by_domain": adjusted, "by_domain": {name: test[1] for name, test in tests.items()}}
    found = (
        f"The largest risk difference is {size:.3f} ± {error:.3f} in domain {worst} (adjusted "
        f"{p_in_words(smallest)}, the smallest over {len(tests)} domains)."
    )
    result = (size, error, smallest, details)
    if smallest >= inputs.level:
        if error > _NOTICEABLE_RISK:
            remedy = "Pass more rows: a noticeable difference would not be seen."
            return CheckResult("stability", "cannot tell", found, remedy, *result)
        return CheckResult("stability", "holds", found, "", *result)
    effect = max(test[3] for name, test in tests.items() if adjusted[name] < inputs.level)
    verdict = judge(smallest, effect, level=inputs.level, matters=_NOTICEABLE_RISK)
    remedy = "Drop stable columns whose meaning changes; see 'kind of stability' for label shift."
    remedy = "" if verdict == "holds" else remedy
    return CheckResult("stability", verdict, found, remedy, *result)


@dataclass(frozen=True, eq=False)
class _CommonErrors:
    """What f_S may get wrong everywhere alike, by class: an orthonormal basis and the weights in it."""

    logs: FloatArray
    weights: tuple[FloatArray, ...]
    bases: tuple[FloatArray, ...]
    n_columns: int

    @classmethod
    def of(cls, training: TrainingRows) -> _CommonErrors:
        logs = log_contrasts(training.stable)
        design = _common_design(training, logs)
        # The score of a logistic model weighs its design by f (1 − f).
        weights = tuple(np.sqrt(np.maximum(f * (1.0 - f), 1e-6)) for f in training.stable.T)
        return cls(logs, weights, tuple(_basis(design * w[:, None]) for w in weights), design.shape[1])

    def remove(self, values: FloatArray, k: int) -> FloatArray:
        """Values minus the part that the common design explains, by least squares weighted for class k."""
        weighted = values * self.weights[k][:, None]
        return (weighted - self.bases[k] @ (self.bases[k].T @ weighted)) / self.weights[k][:, None]


def _basis(design: FloatArray) -> FloatArray:
    """Orthonormal columns with the span of `design`, whose columns may depend on each other."""
    values, vectors = np.linalg.eigh(design.T @ design)
    kept = values > 1e-10 * values.max()
    return design @ (vectors[:, kept] / np.sqrt(values[kept]))


def _domain_test(
    training: TrainingRows, rows: np.ndarray, common: _CommonErrors
) -> tuple[float, float, float, float]:
    """p-value, risk difference, its error, and the largest effect of one domain against the others.

    Moments: (Y − f) times (1, log f) within the domain, the common part removed, so that what f_S gets wrong
    everywhere is not held against one domain. The effect is the risk difference, or how much the risk varies
    with log f within the domain (one standard deviation of it), whichever is larger.
    """
    inside = np.zeros(len(training.y))
    inside[rows] = 1.0
    logs = common.logs
    moments, differences, errors, tilts = [], [], [], []
    for k in range(1 if training.n_classes == 2 else 0, training.n_classes):
        risk = training.onehot[:, k] - training.stable[:, k]
        column = min(max(k - 1, 0), logs.shape[1] - 1)
        own = np.column_stack([inside, inside * (logs[:, column] - logs[rows, column].mean())])
        cleaned = common.remove(own, k)
        moments.append(cleaned[:, :1] * risk[:, None])
        if k or training.n_classes == 2:
            moments.append(cleaned[:, 1:] * risk[:, None])
        scale = float((cleaned[:, 0] * inside).mean())
        differences.append(abs(float(moments[-1 if not k else -2].mean())) / max(scale, 1e-12))
        spread = float((cleaned[:, 0] * risk).std(ddof=1))
        errors.append(spread / np.sqrt(len(risk)) / max(scale, 1e-12))
        slope = float((cleaned[:, 1] * risk).sum()) / max(float((cleaned[:, 1] * own[:, 1]).sum()), 1e-12)
        tilts.append(abs(slope) * float(own[rows, 1].std()))
    if training.n_classes > 2:
        del moments[0]  # the classes' residuals sum to zero
    test = zero_mean_test(np.column_stack(moments), lost=common.n_columns)
    worst = int(np.argmax(differences))
    return test.p_value, differences[worst], errors[worst], max(*differences, *tilts)


def _common_design(training: TrainingRows, logs: FloatArray) -> FloatArray:
    """What f_S may get wrong everywhere alike: offset, temperature, and X_S where it is given."""
    parts = [np.ones((len(logs), 1)), logs]
    if training.X_stable is not None:
        X = training.X_stable
        parts.append(X if X.shape[1] <= _MOST_STABLE else principal_components(X, _MOST_STABLE))
    return scaled(np.column_stack(parts))


#: A slope this near to 0 or 1 is that, however small its error.
_NEAR_SLOPE = 0.1


@dataclass(frozen=True)
class InterceptSlope:
    """Slope of the domain intercepts on the log class shares: 0 for P(Y | X_S) stable, 1 for P(X_S | Y).

    Attributes
    ----------
    slope, standard_error : float
    p_posterior, p_likelihood : float
        Of slope 0 and of slope 1.
    """

    slope: float
    standard_error: float
    p_posterior: float
    p_likelihood: float


@check(
    "kind of stability",
    "Is it the label given the features that stays, or the features given the label?",
    "training",
)
def check_kind_of_stability(inputs: CheckInputs) -> CheckResult:
    """The intercept-slope test over training domains with different class shares."""
    training = inputs.labelled
    outcome = intercept_slope(training)
    if outcome is None:
        found = "The class shares of the training domains do not differ as X_S does, or there is one domain."
        remedy = "Decide by knowledge: causes of the class say 'posterior', effects of it 'likelihood'."
        return CheckResult("kind of stability", "cannot tell", found, remedy)
    posterior, likelihood = (
        p >= inputs.level or abs(outcome.slope - value) <= _NEAR_SLOPE
        for p, value in ((outcome.p_posterior, 0.0), (outcome.p_likelihood, 1.0))
    )
    found = (
        f"Domain intercepts follow the log class shares with slope {outcome.slope:.2f} ± "
        f"{outcome.standard_error:.2f} (0: P(Y | X_S) is stable, 1: P(X_S | Y) is)."
    )
    details = {"p_posterior": outcome.p_posterior, "p_likelihood": outcome.p_likelihood}
    result = (outcome.slope, outcome.standard_error, outcome.p_posterior, details)
    if posterior and likelihood:
        remedy = "Decide by knowledge, or pass more domains: both kinds fit."
        return CheckResult("kind of stability", "cannot tell", found, remedy, *result)
    if posterior:
        return CheckResult("kind of stability", "holds", found, "", *result)
    if likelihood:
        remedy = (
            "Use transport='likelihood' (with the command under [model] of --config): how the classes look "
            "is what stays, not what the looks say of the class."
        )
        return CheckResult("kind of stability", "violated", found, remedy, *result)
    remedy = "Neither kind fits: look for the stable columns that change."
    return CheckResult("kind of stability", "doubtful", found, remedy, *result)


def intercept_slope(training: TrainingRows) -> InterceptSlope | None:
    """Fit one offset per class and domain to log f_S, and regress the offsets on the log class shares.

    Both come from the same labels, whose noise would tie them together. So the mean of f_S in a domain, which
    no label of it enters, is the instrument, and each hypothesis is tested with the variance of (offset −
    slope · share) that it implies itself. None with fewer than two domains that have every class.
    """
    parts = [_domain_offsets(training, rows) for _, rows in training.by_domain if _usable(training, rows)]
    if len(parts) < 2:
        return None
    offsets, shares = np.array([part[0] for part in parts]), np.array([part[1] for part in parts])
    instrument = np.array([part[4] for part in parts])
    sizes = np.array([len(part[2]) for part in parts], dtype=np.float64)
    centre = sizes @ shares / sizes.sum()
    apart = instrument - sizes @ instrument / sizes.sum()
    contrast = sizes[:, None] * apart
    scale = float((contrast * (shares - centre)).sum())
    if scale <= 0.0:
        return None
    contrast = contrast / scale
    level = sizes @ offsets / sizes.sum()
    slope = float((contrast * (offsets - level)).sum())
    errors = {}
    for value in (0.0, 1.0, slope):
        variances = [
            float((((part[2] - value * part[3]) @ weights) ** 2).sum())
            for part, weights in zip(parts, contrast, strict=True)
        ]
        errors[value] = float(np.sqrt(sum(variances)))
    p_values = [float(2.0 * norm.sf(abs(slope - value) / max(errors[value], 1e-12))) for value in (0.0, 1.0)]
    return InterceptSlope(slope, errors[slope], p_values[0], p_values[1])


def _usable(training: TrainingRows, rows: np.ndarray) -> bool:
    counts = np.bincount(training.y[rows], minlength=training.n_classes)
    return len(rows) >= _FEWEST_ROWS and counts.min() >= 5


def _domain_offsets(
    training: TrainingRows, rows: np.ndarray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Offsets a with mean softmax(log f + a) = class shares, log shares, influences on both, and log E[f]."""
    stable, onehot = training.stable[rows], training.onehot[rows]
    logs = floored_log(stable)
    share = onehot.mean(axis=0)
    offset = np.zeros(training.n_classes)
    centring = np.eye(len(offset)) - 1.0 / len(offset)
    for _ in range(50):
        fitted = softmax(logs + offset, axis=1)
        information = np.diag(fitted.mean(axis=0)) - fitted.T @ fitted / len(rows)
        step = np.linalg.pinv(information, rcond=1e-10, hermitian=True) @ (share - fitted.mean(axis=0))
        offset = offset + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-10:
            break
    influence = (onehot - fitted) @ np.linalg.pinv(information, rcond=1e-10, hermitian=True) / len(rows)
    share_influence = (onehot - share) / share / len(rows)
    return (
        centring @ offset,
        centring @ np.log(share),
        influence @ centring,
        share_influence @ centring,
        centring @ np.log(stable.mean(axis=0)),
    )


_NOTICEABLE_DRIFT = 0.1


@dataclass(frozen=True)
class BalanceSketch:
    """Mean and covariance of f_S over the held-out training rows, and each domain's class shares.

    Attributes
    ----------
    mean : array of shape (K,)
    covariance : array of shape (K, K)
    shares : dict of domain to class shares
    n_rows : int
    """

    mean: FloatArray
    covariance: FloatArray
    shares: dict[str, FloatArray]
    n_rows: int

    @classmethod
    def of(cls, rows: TrainingRows) -> Self:
        """Sketch labelled rows with held-out f_S."""
        shares = {str(name): rows.onehot[mine].mean(axis=0) for name, mine in rows.by_domain}
        return cls(rows.stable.mean(axis=0), np.cov(rows.stable.T), shares, len(rows.stable))

    def check(self, stable: FloatArray) -> CheckResult:
        """Total variation between the class shares that f_S implies here and in training.

        Drift is no violation of the paper's assumptions; but if P(X_S | Y) is what transports, the mean of
        f_S is not the class share, and the drift says how much that matters.
        """
        difference = stable.mean(axis=0) - self.mean
        sign = np.sign(difference)
        drift = 0.5 * float(np.abs(difference).sum())
        training = 0.25 * float(sign @ self.covariance @ sign) / self.n_rows
        new = float(np.var(0.5 * stable @ sign, ddof=1)) / len(stable) if len(stable) > 1 else np.inf
        error = float(np.sqrt(training + new))
        seen = {name: 0.5 * float(np.abs(each - self.mean).sum()) for name, each in self.shares.items()}
        widest = max(seen.values())
        found = (
            f"Class shares differ from training by {drift:.3f} ± {error:.3f} (total variation); training "
            f"domains differ by up to {widest:.3f}."
        )
        details = {"by_domain": seen}
        if drift - 1.64 * error <= max(widest, _NOTICEABLE_DRIFT):
            return CheckResult("prior drift", "holds", found, "", drift, error, None, details)
        remedy = (
            "If classes are causes of the stable features, use transport='likelihood'; see the check "
            "'kind of stability'."
        )
        return CheckResult("prior drift", "doubtful", found, remedy, drift, error, None, details)


@check("prior drift", "Are the classes about as frequent as in training?", "training", "new")
def check_prior_drift(inputs: CheckInputs) -> CheckResult:
    """Sketch the training rows and look at the new ones."""
    return BalanceSketch.of(inputs.labelled).check(inputs.fresh.stable)


_FAR = 0.99
_MOST_CENTRES, _ROWS_PER_CENTRE = 64, 20
_MOST_ROWS = 20_000
# With this share of rows outside, f_S is extrapolating as a rule.
_MANY, _TOO_MANY = 0.05, 0.25


@dataclass(frozen=True, eq=False)
class SupportSketch:
    """Where the stable features of the training rows lie: centres of clusters, and how far a row may be.

    Attributes
    ----------
    mean, spread : arrays of shape (d,)
    centres : array of shape (k, d)
        Of standardised features; each stands for about twenty rows or more.
    limit : float
        99 % of the training rows are nearer to a centre than this.
    n_rows : int
    """

    mean: FloatArray
    spread: FloatArray
    centres: FloatArray
    limit: float
    n_rows: int

    @classmethod
    def fit(cls, X: FloatArray, seed: int = 0) -> Self:
        """Sketch the rows of X."""
        rng = np.random.default_rng(seed)
        rows = X if len(X) <= _MOST_ROWS else X[rng.choice(len(X), _MOST_ROWS, replace=False)]
        mean, spread = rows.mean(axis=0), rows.std(axis=0)
        spread = np.where(spread > 0.0, spread, 1.0)
        Z = (rows - mean) / spread
        # Equal rows make equal centres, of which one is enough.
        count = min(_MOST_CENTRES, max(1, len(Z) // _ROWS_PER_CENTRE), len(np.unique(Z, axis=0)))
        with threadpool_limits(1):
            centres = KMeans(count, n_init=1, random_state=seed).fit(Z).cluster_centers_
        sketch = cls(mean, spread, centres, 0.0, len(X))
        return cls(mean, spread, centres, float(np.quantile(sketch.distance(rows), _FAR)), len(X))

    def distance(self, X: FloatArray) -> FloatArray:
        """Distance of each row to the nearest centre."""
        nearest = np.full(len(X), np.inf)
        Z = (X - self.mean) / self.spread
        for centre in self.centres:
            np.minimum(nearest, ((Z - centre) ** 2).sum(axis=1), out=nearest)
        return np.sqrt(nearest)

    def check(self, X: FloatArray, level: float = 0.05) -> CheckResult:
        """Share of rows further away than 99 % of the training rows are.

        X_U is not looked at: it is meant to move.
        """
        far = int((self.distance(X) > self.limit * (1.0 + 1e-9)).sum())
        share = far / len(X)
        error = float(np.sqrt(share * (1.0 - share) / len(X)))
        usual = round((1.0 - _FAR) * self.n_rows)
        table = [[far, len(X) - far], [usual, self.n_rows - usual]]
        p_value = float(fisher_exact(table, alternative="greater").pvalue)
        found = (
            f"{100 * share:.1f} % of the new rows are further from training (in the stable features) than "
            "99 % of training rows are."
        )
        if share <= _MANY or p_value >= level:
            return CheckResult("support", "holds", found, "", share, error, p_value)
        remedy = (
            "Look at those rows: the stable predictor extrapolates there, and its probabilities are guesses."
        )
        verdict: Verdict = "violated" if share > _TOO_MANY else "doubtful"
        return CheckResult("support", verdict, found, remedy, share, error, p_value)


@check("support", "Do the rows lie where the training rows lay?", "training X_S", "new X_S")
def check_support(inputs: CheckInputs) -> CheckResult:
    """Sketch the training rows and look at the new ones."""
    sketch = SupportSketch.fit(inputs.labelled.features, inputs.random_state)
    return sketch.check(inputs.fresh.features, inputs.level)
