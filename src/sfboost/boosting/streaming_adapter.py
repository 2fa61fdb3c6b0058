"""`StreamingAdapter`: a new domain whose rows arrive over time."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfboost.adaptation import Adaptation
from sfboost.adaptation.decision import FEWEST_LABELS, LABELS_PER_PARAMETER
from sfboost.adaptation.engine import adapt as adapt_arrays
from sfboost.adaptation.online import OnlineHead
from sfboost.adaptation.row_sample import row_keys
from sfboost.adaptation.watching import Watch
from sfboost.answers import BestAnswer
from sfboost.answers.candidates import BoostedAnswer
from sfboost.boosting.adapted import AdaptedClassifier
from sfboost.boosting.parts import both_parts
from sfboost.marginal.probabilities import FloatArray

#: How many names of batches are remembered, to know one that comes again.
_REMEMBERED = 10_000
#: Rows of the last batches, by which a guard judges the head.
_JUDGED = 1000
#: Odds at which the new head is believed, or given up.
_CREDIBLE = float(np.log(20.0))
#: Nats by which one row may speak against the head; a bound keeps the mean below one.
_MOST_LEAD = 1.0

Kind = Literal["learned", "alarm", "waiting", "switched", "back", "late", "repeated"]


@dataclass(frozen=True)
class Event:
    """What one batch did.

    Attributes
    ----------
    kind : str
        "learned"; "alarm" (a change is believed; the head of before goes on answering); "waiting" (the new
        head learns and is compared); "switched" (it answers from now on); "back" (it is given up: behind, or
        not ahead after as many rows as the head of before remembers); "late" (learned, not watched);
        "repeated" (left out).
    p_value : float
        How unlike all rows before the batch is, or the lot that it completes: small batches are judged
        together. The first lot is compared with what the head expects: one over the odds against it. Nan if
        nothing was judged.
    detector : float
        The evidence of a change; an alarm is when it exceeds `StreamingAdapter.threshold`.
    lead : float
        Nats by which the new head is ahead, while it is compared.
    """

    kind: Kind
    p_value: float = float("nan")
    detector: float = 0.0
    lead: float = 0.0


class StreamingAdapter:
    """Learns from batches of a new domain as they come, forgets, and watches for a change.

    The order of batches matters, since recent rows count more; the order of rows in a batch does not. A batch
    that is late is told so by its age. One that comes again is known by its name and left out. What is kept
    does not grow.

    Parameters
    ----------
    adapted : AdaptedClassifier
        Where to begin: a model adapted to the first rows. What was chosen for them (answer="best") stays
        chosen until a new head is believed; SFB's part in it learns.
    half_life : float, optional
        Rows after which what was learned counts half. None forgets nothing.
    batches_per_year : float
        How often `update` is called.
    false_alarms_per_year : float
        At most so many alarms a year are expected if nothing ever changes, however often one looks.

    Examples
    --------
    >>> import numpy as np
    >>> from sfboost import StableFeatureBoosting
    >>> rng = np.random.default_rng(0)
    >>> def draw(n, slope):
    ...     y = rng.integers(0, 2, n)
    ...     return np.column_stack([y + rng.normal(size=n), slope * y + rng.normal(size=n)]), y
    >>> X, y = draw(2000, 1.0)
    >>> model = StableFeatureBoosting([0]).fit(X, y, sample_domain=np.repeat(["a", "b"], 1000))
    >>> stream = StreamingAdapter(model.adapt(draw(1000, -2.0)[0], answer="checked"), half_life=5000)
    >>> [stream.update(draw(200, -2.0)[0]).kind for _ in range(3)]
    ['learned', 'learned', 'learned']

    References
    ----------
    .. [1] M. Pollak (1985). Optimal Detection of a Change in Distribution. Annals of Statistics 13.
    .. [2] V. Vovk and R. Wang (2021). E-values: Calibration, Combination and Applications. Annals of
       Statistics 49.
    """

    def __init__(
        self,
        adapted: AdaptedClassifier,
        *,
        half_life: float | None = None,
        batches_per_year: float = 365.0,
        false_alarms_per_year: float = 1.0,
    ) -> None:
        if not isinstance(adapted, AdaptedClassifier):
            raise TypeError(
                f"Got a {type(adapted).__name__}: pass what its `adapt` returns for the first rows."
            )
        if half_life is not None and not half_life > 0.0:
            raise ValueError(f"half_life={half_life} makes no sense: it is a number of rows, or None.")
        if not 0.0 < false_alarms_per_year <= batches_per_year:
            raise ValueError(
                f"false_alarms_per_year={false_alarms_per_year} must be positive, and at most the "
                f"{batches_per_year:g} batches of a year."
            )
        self.half_life = half_life
        if not isinstance(adapted.adaptation, Adaptation):
            raise ValueError("A leak-corrected network cannot be updated: adapt it again to all rows.")
        self._model, self._adaptation = adapted.model, adapted.adaptation
        self._best: BestAnswer | None = adapted.best
        self._head = OnlineHead.after(adapted.adaptation)
        self._watch = Watch(self._head.standardizer, half_life)
        self._candidate: OnlineHead | None = None
        self._detector = self._lead = 0.0
        self._waited = 0
        self._names: tuple[Any, ...] = ()
        self._recent: tuple[tuple[FloatArray, FloatArray], ...] = ()
        self.threshold = batches_per_year / false_alarms_per_year
        self.n_batches = 0

    def update(self, X: Any, *, name: Any = None, age: float = 0.0) -> Event:
        """Take one batch.

        Parameters
        ----------
        X : rows, as `adapt` takes them
        name : hashable, optional
            By which the batch is known if it comes again.
        age : float
            For a batch that is late: the rows that arrived since it should have. It counts as if it had come
            then, and is not watched for a change.
        """
        if not age >= 0.0:
            raise ValueError(
                f"age={age} makes no sense: it is a number of rows, zero if the batch is on time."
            )
        if name is not None and name in self._names:
            return Event("repeated", detector=self._detector)
        stable, unstable = both_parts(self._model, X)
        if name is not None:
            self._names = (*self._names, name)[-_REMEMBERED:]
        self.n_batches += 1
        self._recent = (*self._recent, (stable, unstable))
        while sum(len(batch[0]) for batch in self._recent) >= _JUDGED + len(self._recent[0][0]):
            self._recent = self._recent[1:]
        keep = 1.0 if self.half_life is None else 2.0 ** (-len(stable) / self.half_life)
        if age > 0.0:
            count = 1.0 if self.half_life is None else 2.0 ** (-age / self.half_life)
            self._head = self._head.learn(stable, unstable, 1.0, count)
            return Event("late", detector=self._detector)
        if self._candidate is not None:
            return self._compare(self._candidate, stable, unstable, keep)
        first = self._watch.mean is None
        lot = self._watch.lot(stable, unstable)
        p_value, watch = self._watch.look(stable, unstable)
        if first and watch.mean is not None:
            # Nothing but the head knows the rows before. Its error stays: this is no part of a sum.
            odds = self._contradiction(*lot)
            p_value, alarm = min(1.0, float(np.exp(-odds))), odds > np.log(self.threshold)
        elif np.isnan(p_value):
            alarm = False
        else:
            # Shiryaev–Roberts with e-values that are valid given the past: while nothing changes, the mean
            # time to an alarm is at least the threshold (Shin, Ramdas & Rinaldo, 2024).
            self._detector = (1.0 + self._detector) * evidence(p_value)
            alarm = self._detector > self.threshold
        if alarm:
            self._watch = replace(self._watch, waiting=())
            self._candidate, self._lead, self._waited = self._fresh(*lot), 0.0, 0
            return Event("alarm", p_value, self._detector)
        self._watch = watch
        self._head = self._head.learn(stable, unstable, keep)
        return Event("learned", p_value, self._detector)

    def _compare(self, candidate: OnlineHead, stable: FloatArray, X: FloatArray, keep: float) -> Event:
        """Judge both heads by a batch that neither has seen, then let the new one learn from it."""
        self._lead += candidate.log_likelihood(stable, X) - self._head.log_likelihood(stable, X)
        candidate = candidate.learn(stable, X, keep)
        worth = candidate.statistics.effective_labels
        enough = worth >= max(FEWEST_LABELS, LABELS_PER_PARAMETER * candidate.theta.size)
        if self._lead > _CREDIBLE and enough:
            self._head, self._candidate, self._detector = candidate, None, 0.0
            self._best, self._watch = None, Watch(candidate.standardizer, self.half_life)
            return Event("switched", lead=self._lead)
        self._waited += len(stable)
        if self._lead < -_CREDIBLE or self._waited > self._head.statistics.weight:
            self._candidate, self._detector = None, 0.0
            self._head = self._head.learn(stable, X, keep)
            return Event("back", lead=self._lead)
        self._candidate = candidate
        return Event("waiting", detector=self._detector, lead=self._lead)

    def _contradiction(self, stable: FloatArray, X: FloatArray) -> float:
        """Log-odds against the head: a new one of half of these rows, judged by the other half, and in turn.

        A ratio of likelihoods is one on average if the head is right (an e-value), whatever the tails of X_U
        and however rare a class: no mean has to be normal. Halves are drawn by a hash of the rows.
        """
        unlabelled = np.full(len(stable), -1, dtype=np.intp)
        order = np.argsort(row_keys(stable, X, unlabelled, np.ones(len(stable))), kind="stable")
        leads = []
        for learned, judged in ((order[::2], order[1::2]), (order[1::2], order[::2])):
            head = self._fresh(stable[learned], X[learned])
            rows = stable[judged], X[judged]
            lead = head.log_likelihoods(*rows) - self._head.log_likelihoods(*rows)
            leads.append(float(np.minimum(lead, _MOST_LEAD).sum()))
        return float(np.logaddexp(leads[0], leads[1]) - np.log(2.0))

    def _fresh(self, stable: FloatArray, X: FloatArray) -> OnlineHead:
        """A head of this batch alone, in the units of the one before."""
        rows = self._head.standardizer.apply(X)
        fitted = adapt_arrays(stable, rows, answer="paper", uncertainty=True)
        head = OnlineHead.after(fitted)
        inner = head.standardizer
        theta = head.theta.copy()
        theta[:, :-1] /= inner.scale
        theta[:, -1] -= theta[:, :-1] @ inner.mean
        back = np.diag(np.append(inner.scale, 1.0))
        back[:-1, -1] = inner.mean
        # θ of the inner units is a linear map of θ of the outer ones: θ_in = θ_out · back.
        turn = np.kron(np.eye(len(theta)), back.T)
        information = turn.T @ head.information @ turn
        return OnlineHead(theta, information, head.statistics, self._head.standardizer)

    @property
    def adapted(self) -> AdaptedClassifier:
        """The classifier that answers now: an object of its own, which later batches do not change."""
        adaptation, best = self._adaptation, self._best
        if self._recent:
            stable, unstable = (np.vstack(parts) for parts in zip(*self._recent, strict=True))
            adaptation = self._head.adapt(adaptation, stable, unstable)
        if best is not None and isinstance(boosted := best.answers.get("boosted"), BoostedAnswer):
            boosted = replace(boosted, adaptation=adaptation)
            best = replace(best, answers={**best.answers, "boosted": boosted})
        return AdaptedClassifier(self._model, adaptation, best)

    def copy(self) -> StreamingAdapter:
        """Another one that has seen the same batches, and goes its own way."""
        return copy(self)

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities by the head that answers now."""
        return self.adapted.predict_proba(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        return self.adapted.predict(X)


def evidence(p_value: float) -> float:
    """An e-value of a p-value: its mean is one if nothing changed (Vovk & Wang, 2021).

    Examples
    --------
    >>> round(evidence(0.001), 1), round(evidence(0.5), 2)
    (20.8, 0.64)
    """
    p = min(max(p_value, 1e-300), 1.0 - 1e-12)
    if p > 1.0 - 1e-4:
        return 0.5  # the limit at one
    log = float(np.log(p))
    return (1.0 - p + p * log) / (p * log**2)
