"""`StableFeatureSelector`: which columns mean the same in every training domain."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from sfboost.diagnostics.moments import holm
from sfboost.diagnostics.rows import check_domain, domain_numbers
from sfboost.marginal.probabilities import BoolArray, IntArray
from sfboost.notices import first_names
from sfboost.selection.basis import normal_scores
from sfboost.selection.invariance import TrainingDomains
from sfboost.selection.result import ColumnVerdict, Selection
from sfboost.selection.search import Rules, Screening, add_company, confirm, screen

# Columns that a sentence names.
_MOST_NAMES = 12


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
    groups : dict or sequence, default=None
        What belongs together and is chosen as a whole, such as the codes of one category: a name for each
        column, or names by column. None is every column by itself.

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
        "groups": [dict, "array-like", None],
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
        names = tuple(units)
        rules = Rules(self.kind, float(self.tolerance), float(self.alpha))
        if domain.max() == 0 or len(classes) < 2:
            self.selection_ = _nothing_to_compare(names, rules, len(classes))
        else:
            self.selection_ = _select(X, label, domain, units, rules)
        verdicts = self.selection_.columns
        self.status_ = self.selection_.status
        order = np.lexsort(
            (
                [c.p_uninformative for c in verdicts],
                [c.p_drift for c in verdicts],
                [c.drift_upper for c in verdicts],
            )
        )
        self.support_ = np.zeros(len(columns), dtype=bool)
        self.ranking_ = np.empty(len(columns), dtype=np.intp)
        members = list(units.values())
        for rank, unit in enumerate(order.tolist(), 1):
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
    if groups is None:
        wanted = columns
    elif isinstance(groups, dict):
        wanted = [str(groups.get(name, name)) for name in columns]
    else:
        wanted = [str(name) for name in groups]
        if len(wanted) != len(columns):
            raise ValueError(
                f"groups has {len(wanted)} names, but X has {len(columns)} columns: name a group for each."
            )
    units: dict[str, tuple[int, ...]] = {}
    for j, name in enumerate(wanted):
        units[name] = (*units.get(name, ()), j)
    return units


def _select(
    X: Any, label: IntArray, domain: IntArray, units: dict[str, tuple[int, ...]], rules: Rules
) -> Selection:
    scores, names = np.column_stack([normal_scores(column) for column in X.T]), tuple(units)
    data = TrainingDomains.of(scores, label, domain, tuple(units.values()))
    screening = screen(data, rules)
    informative = screening.p_uninformative <= rules.alpha
    verdicts = [screening.verdict(j, rules.alpha) for j in range(len(names))]
    start = tuple(j for j, verdict in enumerate(verdicts) if verdict == "stable" and informative[j])
    chosen, dropped = confirm(data, start, screening, rules)
    # What a dropped column does in company is known.
    left = tuple(j for j in range(len(names)) if j not in dropped)
    chosen, added = add_company(data, chosen, left, rules)
    notes = dict.fromkeys(start, "stable alone") | dropped | added
    columns = tuple(
        _column(names[j], j, verdicts[j], screening, bool(informative[j]), j in chosen, notes.get(j))
        for j in range(len(names))
    )
    evidence = rules.measure(data, chosen) if chosen else None
    status = "selected" if chosen else "cannot tell" if "cannot tell" in verdicts else "none"
    sentence = _sentence(status, columns, rules, evidence is None or evidence.p_drift <= rules.alpha)
    if not chosen:
        sentence += _other_kind(data, names, informative, rules)
    return Selection(status, sentence, columns, evidence, rules.kind, rules.tolerance, rules.alpha)


def _column(
    name: str, j: int, verdict: str, screening: Screening, informative: bool, selected: bool, why: str | None
) -> ColumnVerdict:
    if why is None:
        why = {
            "stable": "stable, but not shown to be informative",
            "unstable": "its relation to the label changes between domains",
            "cannot tell": "neither shown to drift nor shown not to",
        }[verdict]
    test = screening.alone[j]
    return ColumnVerdict(
        name=name,
        verdict=verdict,
        informative=informative,
        p_change=float(screening.p_change[j]),
        p_drift=float(screening.p_drift[j]),
        p_uninformative=float(screening.p_uninformative[j]),
        drift=test.drift,
        drift_upper=test.drift_upper,
        selected=selected,
        why=why,
        by_domain=test.by_domain,
    )


def _sentence(status: str, columns: tuple[ColumnVerdict, ...], rules: Rules, confirmed: bool) -> str:
    open_ones = [c.name for c in columns if c.verdict == "cannot tell" and not c.selected]
    if status == "selected":
        chosen = [c.name for c in columns if c.selected]
        text = (
            f"{_few(chosen)} are informative and drift by less than {rules.tolerance:g} between "
            "training domains."
        )
        if not confirmed:
            text += " As a set they are not shown to drift, nor shown not to: more rows would tell."
        if open_ones:
            text += f" Of {_few(open_ones)} the rows cannot tell."
        return text
    if status == "none":
        return "No informative column keeps its relation to the label: name stable_features by knowledge."
    return (
        f"The rows cannot tell whether {_few(open_ones)} are stable: a drift of {rules.tolerance:g} in "
        f"some domain is not excluded where {len(columns)} columns are tested at once. Pass more rows or "
        "domains, raise tolerance, or name stable_features by knowledge."
    )


def _few(names: Sequence[str]) -> str:
    """The first names; who wants all has `selection_.columns`."""
    return first_names(names, _MOST_NAMES)


def _other_kind(data: TrainingDomains, names: tuple[str, ...], informative: BoolArray, rules: Rules) -> str:
    other = Rules(
        {"posterior": "likelihood", "likelihood": "posterior"}[rules.kind], rules.tolerance, rules.alpha
    )
    p_drift = holm(np.array([other.measure(data, (j,)).p_drift for j in range(len(names))]))
    good = [
        name for name, p, says in zip(names, p_drift, informative, strict=True) if p <= rules.alpha and says
    ]
    return f" With kind={other.kind!r} {_few(good)} would be stable." if good else ""


def _nothing_to_compare(names: tuple[str, ...], rules: Rules, n_classes: int) -> Selection:
    what = "one domain" if n_classes > 1 else "one class"
    sentence = (
        f"There is {what} only, so nothing can be compared: pass sample_domain with two domains or more and "
        "labels of two classes or more, or name stable_features by knowledge."
    )
    columns = tuple(
        ColumnVerdict(name, "cannot tell", False, 1.0, 1.0, 1.0, 0.0, 1.0, False, "nothing to compare")
        for name in names
    )
    return Selection("cannot tell", sentence, columns, None, rules.kind, rules.tolerance, rules.alpha)
