"""Do features go with what f_S says as in source domains, and which do not? A test without labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sfboost.marginal.probabilities import FloatArray
from sfboost.shift.attribution import LEFT, attribute, fit_by_feature
from sfboost.shift.prediction import Prediction, combine
from sfboost.shift.reference import BlindDomain, Reference, measure_domain
from sfboost.shift.result import Change, FeatureChange, Verdict
from sfboost.shift.rows import DomainData

# What each moment is worth among all: most are changes of meaning, some of a unit or a zero.
_WORTH = {
    "evidence": 0.23,
    "evidence_slope": 0.23,
    "meaning": 0.17,
    "slope": 0.17,
    "scale": 0.05,
    "shares": 0.1,
    "evidence_scale": 0.05,
}
# A spread this unlikely is a change of unit.
_RESCALED = 0.01
#: Below this power a loss of all meaning would hardly be seen.
LEAST_POWER = 2.0
# Fewer rows, for each class, have no standard error to speak of; nor have fewer of the classes that are not
# the most frequent one.
_FEWEST_ROWS, _FEWEST_OTHERS = 10, 3
# Domains without misfit that are added to those that were seen.
_NO_MISFIT = 3.0


@dataclass(frozen=True, eq=False)
class Comparison:
    """The predictions of one reading of stability."""

    evidence: Prediction
    meaning: Prediction
    evidence_slope: Prediction
    slope: Prediction
    scale: Prediction
    shares: Prediction
    evidence_scale: Prediction

    def p_value(self, importance: FloatArray) -> FloatArray:
        """Of all moments together; each feature is judged at its share of the level, each class as well."""
        levels = {"meaning": importance, "slope": importance, "scale": importance}
        # Shares sum to one: the last follows from the others.
        levels["shares"] = np.ones(1) / max(self.shares.p_value.shape[-1] - 1, 1)
        parts = [
            (getattr(self, name).p_value / np.maximum(levels.get(name, 1.0), 1e-6)).min(axis=-1)
            for name in _WORTH
        ]
        return combine(np.stack(parts, axis=-1), np.array(list(_WORTH.values())))

    @property
    def power(self) -> FloatArray:
        """Of what is lost if U says nothing any more: the evidence, or its slope, whichever would be seen."""
        return np.maximum(self.evidence.power, self.evidence_slope.power)[..., 0]

    def by_column(self) -> FloatArray:
        """A p-value for each column of U."""
        parts = [self.meaning.p_value, self.slope.p_value, self.scale.p_value]
        return combine(np.stack(parts, axis=-1))


def change_in(reference: Reference, view: DomainData, *, level: float = 0.05, misfit: float = 1.0) -> Change:
    """Compare a target domain with the source domains.

    Labels would show whether a feature still means what it meant. Without them its meaning is measured
    through f_S, in the target domain and, likewise without labels, in each source domain; what f_S gets wrong
    it gets wrong in all of them.

    It is called changed only if it is so under both readings of stability, P(Y | X_S) and P(X_S | Y): rows
    whose X_S or class shares moved are not rows whose features changed their meaning.

    `misfit` is how much smaller than chance the p-values of source domains are; see `misfit_of`.

    References
    ----------
    .. [1] Y. Liu and J. Xie (2020). Cauchy Combination Test. Journal of the American Statistical
       Association 115.
    """
    if view.unstable.shape[1] != len(reference.names):
        raise ValueError(
            f"The new rows have {view.unstable.shape[1]} unstable columns, training had "
            f"{len(reference.names)}: pass the same columns in the same order."
        )
    here = measure_domain("new", reference.coordinates, view, reference.prior)
    readings = compare(reference, here)
    p_values = [float(reading.p_value(reference.importance)) for reading in readings]
    chosen = readings[int(np.argmax(p_values))]
    p_value, power = max(p_values) ** (1.0 / misfit), float(chosen.power)
    if len(reference.domains) < 2 or reference.misled or too_few(here.n_rows, reference.prior):
        p_value, power = 1.0, 0.0
    features = _features(reference, chosen)
    suspects = tuple(feature.name for feature in features if feature.same < 0.5) or (
        min(features, key=lambda feature: feature.same).name,
    )
    verdict: Verdict = "changed" if p_value < level else "unchanged"
    if len(reference.domains) < 2 or (verdict == "unchanged" and power < LEAST_POWER):
        verdict = "cannot tell"
    return Change(
        verdict=verdict,
        p_value=p_value,
        power=power,
        level=level,
        ratio=float(chosen.evidence.ratio[0]),
        value=float(here.posterior.evidence[0][0]),
        own={str(own.name): float(own.posterior.evidence[0][0]) for own in reference.domains},
        features=features,
        changed=suspects if verdict == "changed" else (),
        suspects=suspects,
        n_rows=here.n_rows,
    )


def too_few(n_rows: int, prior: FloatArray) -> bool:
    """Whether a domain of so many rows cannot be asked.

    Examples
    --------
    >>> too_few(19, np.array([0.5, 0.5])), too_few(20, np.array([0.5, 0.5]))
    (True, False)
    >>> too_few(40, np.array([0.95, 0.05]))
    True
    """
    others = n_rows * (1.0 - float(prior.max()))
    return n_rows < _FEWEST_ROWS * len(prior) or others < _FEWEST_OTHERS * (len(prior) - 1)


def misfit_of(reference: Reference) -> float:
    """How much smaller than chance the p-values of source domains are, each tested against the others.

    Without a shift −log p is 1 in the mean. Where domains differ by nature it is more, and what a new one
    says is divided by that. Three domains without any misfit are added to those that were seen.
    """
    domains, said = reference.domains, []
    for left_out in domains if len(domains) > 2 else ():
        others = replace(reference, domains=tuple(one for one in domains if one is not left_out))
        p_value = max(float(found.p_value(reference.importance)) for found in compare(others, left_out))
        said.append(-np.log(max(p_value, 1e-15)))
    return max(1.0, (sum(said) + _NO_MISFIT) / (len(said) + _NO_MISFIT))


def compare(reference: Reference, here: BlindDomain) -> list[Comparison]:
    """A domain against the own ones, under both readings of stability."""
    return [
        Comparison(**{name: one.compare(getattr(getattr(here, kind), name)) for name, one in known.items()})
        for kind, known in reference.expected.items()
    ]


def _features(reference: Reference, found: Comparison) -> tuple[FeatureChange, ...]:
    """By feature: its least column, times their number; and which hypothesis about it is how likely."""
    by_column, groups = found.by_column(), reference.groups
    unit = np.exp(found.scale.new - found.scale.expected)
    rescaled = found.scale.p_value * np.bincount(groups)[groups] < _RESCALED
    fit = fit_by_feature([found.meaning, found.slope], np.where(rescaled, unit, 1.0), groups)
    witness = np.asarray(np.bincount(groups, reference.importance), dtype=np.float64)
    likely = attribute(fit, witness)
    made = []
    for group, chances in enumerate(likely):
        columns = np.flatnonzero(groups == group)
        worst = columns[by_column[columns].argmin()]
        made.append(
            FeatureChange(
                name=reference.names[columns[0]],
                columns=tuple(columns.tolist()),
                p_value=min(1.0, float(by_column[worst]) * len(columns)),
                left=float(chances @ LEFT),
                same=float(chances[0]) * (not rescaled[columns].any()),
                rescaled=bool(rescaled[columns].any()),
                importance=float(reference.importance[columns].sum()),
            )
        )
    return tuple(made)
