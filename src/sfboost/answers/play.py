"""Play: own labelled domains are put through changes, and every candidate answer is scored on them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfboost.adaptation.scores import Yardstick, weighted_scores
from sfboost.adaptation.settings import Settings
from sfboost.answers.candidates import BoostedAnswer, BoostSettings, fit_candidates, with_penalty
from sfboost.answers.mending import Habits
from sfboost.answers.stress import SAME_BUT_FOR_UNITS, kinds_of_stress, stressed
from sfboost.answers.suspecting import change_of_rows
from sfboost.change import DomainData, Reference
from sfboost.marginal.probabilities import FloatArray, IntArray

_LOG = logging.getLogger(__name__)

#: What a domain is when nothing is done to it.
AS_IS = "as is"
#: By what answers are chosen where nobody says what counts. Unlike a log loss it has a bound, so that no
#: single domain decides.
USUAL_METRIC = "brier"


@dataclass(frozen=True)
class Case:
    """One own domain after one change.

    Attributes
    ----------
    domain : str
    kind : str
        What happened to it.
    signature : tuple of float
        How that looked without labels; see `Change.signature`.
    p_value : float
        Of the test.
    n_rows : int
    loss : dict of str to float
        Of each candidate, by what answers are chosen: less is better. nan where nobody can say, as the AUROC
        of rows of one class.
    metric : str
        What it is the loss of.
    surprises : dict of str to dict of str to float
        Of each candidate, by score: its true one less the one that its own probabilities foretold.
    """

    domain: str
    kind: str
    signature: tuple[float, ...]
    p_value: float
    n_rows: int
    loss: dict[str, float]
    metric: str = USUAL_METRIC
    surprises: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def judges(self) -> bool:
        """Whether its losses can be compared."""
        return not np.isnan(list(self.loss.values())).any()


def play(
    rows: Sequence[DomainData],
    labels: Sequence[IntArray],
    domains: Sequence[Any],
    reference: Reference,
    habits: Habits | None,
    choices: Settings,
    *,
    quiet: Sequence[Mapping[str, FloatArray]] | None = None,
    changed: bool = True,
    foretelling: bool = True,
    seed: int = 0,
) -> tuple[Case, ...]:
    """Score every candidate on every own domain, as it is and after each change.

    Each domain's `rows` are seen by predictors that were trained without it. `quiet` is what further answers
    say of each domain as it is. Without `changed` all domains stay as they are; without `foretelling`
    cases have no surprises.
    """
    strongest = np.flatnonzero(
        reference.groups == np.bincount(reference.groups, reference.importance).argmax()
    )
    settings = settings_of_play(choices, reference)
    every, by = np.arange(len(reference.groups)), choices.yardstick(USUAL_METRIC)
    kinds: list[tuple[str, str, IntArray]] = [(AS_IS, AS_IS, every)]
    if changed and all(part.ask is not None for part in rows):
        stresses = kinds_of_stress(len(reference.prior))
        kinds += [(f"all {kind}", kind, every) for kind in stresses]
        if len(strongest) < len(every):
            kinds += [(f"strongest {kind}", kind, strongest) for kind in stresses]
    cases: list[Case] = []
    further: Sequence[Mapping[str, FloatArray]] = [{}] * len(rows) if quiet is None else quiet
    for begun, (place, part, y, also) in enumerate(zip(domains, rows, labels, further, strict=True), 1):
        if foretelling:  # else many fits are made, and who makes them tells how far that is
            _LOG.info("Own domains play the new one: %d of %d begun", begun, len(domains))
        rng = np.random.default_rng([seed, len(cases)])
        found = settings
        boosted: BoostedAnswer | None = None
        for name, kind, columns in kinds:
            here = part
            if kind != AS_IS:
                here = part.with_unstable(stressed(kind, part.unstable, y, columns, rng))
            change = change_of_rows(reference, habits, here)
            # Classes that all features tell apart in another way are another problem, with its own penalty.
            # SFB has units and signs of its own: in others it says what it said of the rows as they are.
            own = kind in ("permuted", "class means turned") and len(columns) == len(every)
            known = boosted if boosted is not None and kind in SAME_BUT_FOR_UNITS else None
            answers = fit_candidates(
                here,
                change,
                habits,
                settings if own else found,
                None if known is None else known.adaptation,
            )
            said = {answer: fitted.log_proba(here) for answer, fitted in answers.items()}
            if known is not None:
                said["boosted"] = known.log_proba(part)
            if kind == AS_IS:
                said |= also
            first = answers["boosted"]
            if kind == AS_IS and isinstance(first, BoostedAnswer):
                found = with_penalty(settings, first)
                ours = settings.choices.head is None and settings.choices.standardize is not False
                boosted = first if ours else None
            cases.append(_scored(str(place), name, change, said, y, here.weight, by, foretelling))
    return tuple(cases)


def settings_of_play(choices: Settings, reference: Reference) -> BoostSettings:
    """However few the rows, and with our head: a user's pipeline may read what is not numbers."""
    ours = replace(choices, head=None, rounds=None) if choices.wraps_head else choices
    return BoostSettings(ours, reference.prior, always=True)


def _scored(
    domain: str,
    kind: str,
    change: Any,
    said: dict[str, FloatArray],
    y: IntArray,
    weight: FloatArray,
    by: Yardstick,
    foretelling: bool,
) -> Case:
    label = weight[:, None] * np.eye(next(iter(said.values())).shape[1])[y]
    proba = {name: np.exp(log_proba) for name, log_proba in said.items()}
    return Case(
        domain=domain,
        kind=kind,
        signature=change.signature,
        p_value=change.p_value,
        n_rows=len(y),
        loss={name: by.loss(each, label) for name, each in proba.items()},
        metric=by.metric,
        surprises={
            name: _surprise(each, label, weight, by.costs) for name, each in proba.items() if foretelling
        },
    )


def _surprise(
    proba: FloatArray, label: FloatArray, weight: FloatArray, price: FloatArray | None
) -> dict[str, float]:
    """True scores less foretold ones."""
    true = weighted_scores(proba, label, price)
    foretold = weighted_scores(proba, weight[:, None] * proba, price)
    return {name: value - foretold[name] for name, value in true.items()}
