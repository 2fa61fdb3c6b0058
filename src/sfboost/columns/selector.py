"""`StableFeatureSelector`: which columns mean the same in every training domain.

Columns are screened alone, confirmed together, and joined by those that are stable only in company.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from sfboost.columns.invariance import Invariance, TrainingDomains, p_uninformative
from sfboost.diagnostics.moments import holm
from sfboost.diagnostics.rows import check_domain, domain_numbers
from sfboost.marginal.probabilities import BoolArray
from sfboost.notices import first_names

_LOG = logging.getLogger(__name__)
# Pairs of left-out columns are tried up to this many columns: 45 pairs.
_MOST_FOR_PAIRS = 10
# Columns that a sentence names.
_MOST_NAMES = 12
_WHY = {
    "stable": "stable, but not shown to be informative",
    "unstable": "its relation to the label changes between domains",
    "cannot tell": "too few rows to tell",
}


@dataclass(frozen=True)
class ColumnVerdict:
    """One column alone.

    Attributes
    ----------
    name : str
    verdict : {"stable", "unstable", "cannot tell"}
    informative : bool
        Whether it says something of Y within domains (condition 2 of the paper).
    p_change, p_drift, p_uninformative : float
        Adjusted for the number of columns (Holm): of "its relation to Y is the same in every domain",
        of "some domain drifts by the tolerance or more", of "it says nothing of Y".
    drift, drift_upper : float
        Estimated drift of the worst domain and its upper confidence limit (see `Invariance`).
    selected : bool
    why : str
        How it came in or why it stayed out.
    by_domain : tuple of float
        Estimated drift of each domain against the others.
    """

    name: str
    verdict: str
    informative: bool
    p_change: float
    p_drift: float
    p_uninformative: float
    drift: float
    drift_upper: float
    selected: bool
    why: str
    by_domain: tuple[float, ...] = ()


@dataclass(frozen=True)
class Selection:
    """Result of a search for stable columns.

    Attributes
    ----------
    status : {"selected", "none", "cannot tell"}
    sentence : str
        The status in words, with what to do.
    columns : tuple of ColumnVerdict
    chosen : Invariance or None
        Evidence about the chosen columns as a set.
    kind : {"posterior", "likelihood"}
    tolerance, alpha : float
    """

    status: str
    sentence: str
    columns: tuple[ColumnVerdict, ...]
    chosen: Invariance | None
    kind: str
    tolerance: float
    alpha: float

    @property
    def in_order(self) -> tuple[ColumnVerdict, ...]:
        """The chosen columns, then the others; the least drift first."""
        return tuple(sorted(self.columns, key=lambda c: (not c.selected, c.drift_upper)))

    def __str__(self) -> str:
        width = max(len(column.name) for column in self.columns)
        lines = [f"{self.status}: {self.sentence}"]
        for c in self.in_order:
            lines.append(
                f"{'*' if c.selected else ' '} {c.name:<{width}}  {c.verdict:<11}  drift {c.drift:.3f} "
                f"(at most {c.drift_upper:.3f})  {c.why}"
            )
        return "\n".join(lines)


class StableFeatureSelector(SelectorMixin, BaseEstimator):
    """Rank and choose columns whose relation to the label is the same in every training domain.

    A column is chosen if it is *shown* to drift less than `tolerance` between each training domain and the
    others, and if it is informative. Not being shown to drift is not enough: few rows show nothing, and the
    answer then is "cannot tell".

    Parameters
    ----------
    kind : {"posterior", "likelihood"}, default="posterior"
        What is to be the same in every domain: Pr[Y | x] (the paper's stability, of causes), or Pr[x | Y]
        (stability under label shift, of effects).
    tolerance : float, default=0.1
        Largest harmless drift, as total variation distance (root mean square over rows): .1 says that a
        domain's Pr[Y | x] may be off by ten points.
    alpha : float, default=0.05
        Level of each family-wise error rate below.
    groups : sequence of str, default=None
        What belongs together and is chosen as a whole, such as the codes of one category: a name for each
        column. None is every column by itself.

    Attributes
    ----------
    support_ : array of bool of shape (n_features_in_,)
    ranking_ : array of int of shape (n_features_in_,)
        1 is the column whose drift has the lowest upper limit.
    status_ : {"selected", "none", "cannot tell"}
    selection_ : Selection
        Verdicts, p-values, drifts and a sentence; prints as a table.

    Notes
    -----
    In large samples, over the training domains and in the directions tested (intercept, slope, curvature;
    for sets slopes and products):

    - with probability 1 − `alpha` no column with a drift of `tolerance` or more is called stable;
    - with probability 1 − `alpha` no column without any drift is called unstable;
    - with probability 1 − `alpha` no column is added that has such a drift together with the chosen ones.

    Nothing is guaranteed about a domain that was not seen.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y, hospital = rng.integers(0, 2, 4000), np.repeat(["a", "b"], 2000)
    >>> stable = y + rng.standard_normal(4000)
    >>> unstable = np.where(hospital == "a", 1, -1) * y + rng.standard_normal(4000)
    >>> selector = StableFeatureSelector().fit(np.column_stack([stable, unstable]), y, sample_domain=hospital)
    >>> selector.status_, selector.get_support()
    ('selected', array([ True, False]))

    References
    ----------
    .. [1] J. Peters, P. Bühlmann and N. Meinshausen (2016). Causal Inference by Using Invariant Prediction.
       Journal of the Royal Statistical Society B 78.
    .. [2] S. Holm (1979). A Simple Sequentially Rejective Multiple Test Procedure. Scandinavian Journal of
       Statistics 6.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kind": [StrOptions({"posterior", "likelihood"})],
        "tolerance": [Interval(Real, 0, 1, closed="neither")],
        "alpha": [Interval(Real, 0, 0.5, closed="neither")],
        "groups": ["array-like", None],
    }

    def __init__(
        self, kind: str = "posterior", *, tolerance: float = 0.1, alpha: float = 0.05, groups: Any = None
    ) -> None:
        self.kind = kind
        self.tolerance = tolerance
        self.alpha = alpha
        self.groups = groups

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        """Test every column, alone and in sets.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Numbers; categories as numbers are fine.
        y : array-like of shape (n,)
            Class labels.
        sample_domain : array-like of shape (n,), optional
            Domain of each row. None is one domain, with which nothing can be told.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        classes, label = np.unique(y, return_inverse=True)
        domain = domain_numbers(check_domain(sample_domain, len(label)))[1]
        columns = [str(name) for name in _check_feature_names_in(self)]
        units = _units(columns, self.groups)
        rules = {"kind": self.kind, "tolerance": float(self.tolerance), "alpha": float(self.alpha)}
        if domain.max() == 0 or len(classes) < 2:
            self.selection_ = _nothing_to_compare(tuple(units), "class" if domain.max() else "domain", rules)
        else:
            data = TrainingDomains.of(X, label, domain, tuple(units.values()), **rules)
            self.selection_ = _select(data, tuple(units))
        verdicts = self.selection_.columns
        self.status_ = self.selection_.status
        order = sorted(
            range(len(verdicts)),
            key=lambda j: (verdicts[j].drift_upper, verdicts[j].p_drift, verdicts[j].p_uninformative),
        )
        self.support_ = np.zeros(len(columns), dtype=bool)
        self.ranking_ = np.empty(len(columns), dtype=np.intp)
        members = list(units.values())
        for rank, unit in enumerate(order, 1):
            self.ranking_[list(members[unit])] = rank
            self.support_[list(members[unit])] = verdicts[unit].selected
        return self

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _units(columns: list[str], groups: Any) -> dict[str, tuple[int, ...]]:
    """Columns by the name of what they are chosen with."""
    wanted = columns if groups is None else [str(name) for name in groups]
    if len(wanted) != len(columns):
        raise ValueError(
            f"groups has {len(wanted)} names, but X has {len(columns)} columns: name a group for each."
        )
    units: dict[str, tuple[int, ...]] = {}
    for j, name in enumerate(wanted):
        units[name] = (*units.get(name, ()), j)
    return units


def _select(data: TrainingDomains, names: tuple[str, ...]) -> Selection:
    """From evidence to a set."""
    screened = screen(data, names)
    start = tuple(j for j, c in enumerate(screened) if c.verdict == "stable" and c.informative)
    chosen, dropped = confirm(data, start, screened)
    # What a dropped column does in company is known.
    chosen, added = add_company(data, chosen, tuple(j for j in range(len(names)) if j not in dropped))
    notes = dict.fromkeys(start, "stable alone") | dropped | added
    columns = tuple(
        replace(column, selected=j in chosen, why=notes.get(j, column.why))
        for j, column in enumerate(screened)
    )
    unsure = any(column.verdict == "cannot tell" for column in columns)
    status = "selected" if chosen else "cannot tell" if unsure else "none"
    evidence = data.measure(chosen) if chosen else None
    sentence = _sentence(columns, data, evidence) + ("" if chosen else _other_kind(data, screened))
    return Selection(status, sentence, columns, evidence, data.kind, data.tolerance, data.alpha)


def screen(data: TrainingDomains, names: tuple[str, ...]) -> tuple[ColumnVerdict, ...]:
    """Test every column (or category) alone.

    A drift that is shown to be small is small, even if it is shown to be there as well.
    """
    alone = []
    for j in range(len(data.units)):
        alone.append(data.measure((j,)))
        _LOG.info("Searching for stable columns: %d of %d tested", j + 1, len(data.units))
    tests = {
        "change": [test.p_change for test in alone],
        "drift": [test.p_drift for test in alone],
        "nothing": [p_uninformative(data, (j,)) for j in range(len(alone))],
    }
    adjusted = zip(*(holm(np.array(p_values)).tolist() for p_values in tests.values()), strict=True)
    verdicts = []
    for name, test, (change, drift, nothing) in zip(names, alone, adjusted, strict=True):
        verdict = "stable" if drift <= data.alpha else "unstable" if change <= data.alpha else "cannot tell"
        found = (nothing <= data.alpha, change, drift, nothing, test.drift, test.drift_upper)
        verdicts.append(ColumnVerdict(name, verdict, *found, False, _WHY[verdict], test.by_domain))
    return tuple(verdicts)


def confirm(
    data: TrainingDomains, start: tuple[int, ...], screened: tuple[ColumnVerdict, ...]
) -> tuple[tuple[int, ...], dict[int, str]]:
    """Drop columns until the set is not shown to drift; also return why each one was dropped.

    Columns that are stable one by one need not be stable together (CE-DD). The least informative column
    without which the set is not shown to drift goes; if there is none, the least informative of all.
    """
    chosen, dropped = start, {}
    while len(chosen) > 1 and drifts(data, chosen):
        _LOG.info("Stable alone, but %d columns are not so together. Which can be left out?", len(chosen))
        without = {j: tuple(k for k in chosen if k != j) for j in chosen}
        by_information = sorted(chosen, key=lambda j: -screened[j].p_uninformative)
        out = next((j for j in by_information if not drifts(data, without[j])), by_information[0])
        dropped[out] = f"stable alone, but not together with {len(chosen) - 1} other(s)"
        chosen = without[out]
    return chosen, dropped


def drifts(data: TrainingDomains, chosen: tuple[int, ...]) -> bool:
    """Whether a set is shown to drift, and not shown to drift little."""
    test = data.measure(chosen)
    return test.p_change <= data.alpha < test.p_drift


def add_company(
    data: TrainingDomains, chosen: tuple[int, ...], left: tuple[int, ...]
) -> tuple[tuple[int, ...], dict[int, str]]:
    """Add columns that are stable only together: two causes that both shift, or a spouse and its effect.

    Round r tries all sets of one or two more columns of those `left` and spends α / 2^r on them, evenly: over
    all rounds the probability of adding a set with a drift of the tolerance or more is at most α.
    """
    added: dict[int, str] = {}
    share = data.alpha
    while True:
        share /= 2.0
        rest = [j for j in left if j not in chosen]
        candidates: list[tuple[int, ...]] = [(j,) for j in rest] if chosen else []
        candidates += combinations(rest, 2) if len(rest) <= _MOST_FOR_PAIRS else []
        level, passing = share / max(len(candidates), 1), []
        for done, new in enumerate(candidates, 1):
            if _hopeless(data, chosen, new, level):
                continue
            p_drift = data.measure(tuple(sorted(chosen + new))).p_drift
            if p_drift <= level and all(
                p_uninformative(data, (j,), tuple(k for k in chosen + new if k != j)) <= level for j in new
            ):
                passing.append((p_drift, new))
            _LOG.info("Searching for columns stable together: %d of %d tested", done, len(candidates))
        if not passing:
            return chosen, added
        new = min(passing)[1]
        added |= dict.fromkeys(new, "stable together with the other selected columns")
        chosen = tuple(sorted(chosen + new))


def _hopeless(data: TrainingDomains, chosen: tuple[int, ...], new: tuple[int, ...], level: float) -> bool:
    """Whether no larger set can be shown to be stable, so that it need not be tested.

    More columns leave less information about the drift of those that are there, and have more degrees of
    freedom.
    """
    small, large = len(data.columns(chosen)), len(data.columns(chosen + new))
    as_flexible = data.affords_products(small) == data.affords_products(large)
    return small > 1 and as_flexible and data.measure(chosen).least_p_drift > level


def _other_kind(data: TrainingDomains, screened: tuple[ColumnVerdict, ...]) -> str:
    """Name the informative columns that are stable in the other kind, if there are any."""
    kind = "likelihood" if data.kind == "posterior" else "posterior"
    other = replace(data, kind=kind, measured={})
    p_drift = holm(np.array([other.measure((j,)).p_drift for j in range(len(screened))]))
    good = [c.name for c, p in zip(screened, p_drift, strict=True) if p <= data.alpha and c.informative]
    if not good:
        return ""
    names = first_names(good, _MOST_NAMES)
    if kind == "posterior":
        return f" The same in every domain: the class, given {names} (kind='posterior')."
    return f" The same in every domain: {names}, given the class (kind='likelihood')."


def _sentence(columns: tuple[ColumnVerdict, ...], data: TrainingDomains, evidence: Invariance | None) -> str:
    open_ones = [c.name for c in columns if c.verdict == "cannot tell" and not c.selected]
    unsure = first_names(open_ones, _MOST_NAMES)
    if evidence is not None:
        chosen = first_names((c.name for c in columns if c.selected), _MOST_NAMES)
        text = f"{chosen} are informative and drift by less than {data.tolerance:g} between training domains."
        if evidence.p_drift > data.alpha:
            text += " Whether they drift as a set takes more rows to tell."
        return text + (f" Of {unsure} the rows cannot tell." if open_ones else "")
    if not open_ones:
        return (
            "The relation of every informative column to the label changes between domains: name those that "
            "you know to be stable."
        )
    return (
        f"The rows cannot tell whether {unsure} are stable: a drift of {data.tolerance:g} in "
        f"some domain is not excluded where {len(columns)} columns are tested at once. Pass more rows or "
        "domains, raise tolerance, or name those that you know to be stable."
    )


def _nothing_to_compare(names: tuple[str, ...], one: str, rules: dict[str, Any]) -> Selection:
    sentence = (
        f"There is one {one} only, so nothing can be compared: pass sample_domain with two domains or more "
        "and labels of two classes or more, or name the columns that you know to be stable."
    )
    columns = tuple(
        ColumnVerdict(name, "cannot tell", False, 1.0, 1.0, 1.0, 0.0, 1.0, False, "nothing to compare")
        for name in names
    )
    return Selection("cannot tell", sentence, columns, None, **rules)
