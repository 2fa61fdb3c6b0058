"""Play: own labelled domains are put through changes, and every candidate answer is scored on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.adaptation.costs import cheapest, check_costs
from sfboost.adaptation.settings import Choices
from sfboost.answers.candidates import BoostedAnswer, BoostSettings, fit_candidates, with_penalty
from sfboost.answers.mending import Habits
from sfboost.answers.rows import AnswerRows
from sfboost.answers.stress import SAME_BUT_FOR_UNITS, kinds_of_stress, stressed
from sfboost.answers.suspecting import change_of_rows
from sfboost.change import Reference
from sfboost.diagnostics.performance import weighted_scores
from sfboost.marginal.probabilities import FloatArray

IntArray = npt.NDArray[np.intp]

#: What a domain is when nothing is done to it.
AS_IS = "as is"


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
    log_loss, accuracy, balanced : dict of str to float
        Of each candidate.
    surprises : dict of str to dict of str to float
        Of each candidate, by score: its true one less the one that its own probabilities foretold.
    cost : dict of str to float
        Of each candidate's decisions, where wrong ones have a price.
    brier : dict of str to float
        Of each candidate.
    """

    domain: str
    kind: str
    signature: tuple[float, ...]
    p_value: float
    n_rows: int
    log_loss: dict[str, float]
    accuracy: dict[str, float]
    balanced: dict[str, float]
    surprises: dict[str, dict[str, float]] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)
    brier: dict[str, float] = field(default_factory=dict)

    @property
    def loss(self) -> dict[str, float]:
        """What answers are chosen by: their cost or, where nobody has said what is dear, their Brier score.

        Unlike a log loss that has a bound, so that no single domain decides. Files of before lack it.
        """
        return self.cost or self.brier or self.log_loss


def play(
    rows: Sequence[AnswerRows],
    labels: Sequence[IntArray],
    domains: Sequence[Any],
    reference: Reference,
    habits: Habits | None,
    choices: Choices,
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
    every = np.arange(len(reference.groups))
    kinds: list[tuple[str, str, IntArray]] = [(AS_IS, AS_IS, every)]
    if changed and all(part.log_pooled is not None for part in rows):
        stresses = kinds_of_stress(len(reference.prior))
        kinds += [(f"all {kind}", kind, every) for kind in stresses]
        if len(strongest) < len(every):
            kinds += [(f"strongest {kind}", kind, strongest) for kind in stresses]
    cases: list[Case] = []
    further: Sequence[Mapping[str, FloatArray]] = [{}] * len(rows) if quiet is None else quiet
    for place, part, y, also in zip(domains, rows, labels, further, strict=True):
        rng = np.random.default_rng([seed, len(cases)])
        found = settings
        boosted: BoostedAnswer | None = None
        for name, kind, columns in kinds:
            here = part
            if kind != AS_IS:
                here = part.with_unstable(stressed(kind, part.view.unstable, y, columns, rng))
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
            cases.append(
                _scored(str(place), name, change, said, y, here.view.weight, choices.costs, foretelling)
            )
    return tuple(cases)


def settings_of_play(choices: Choices, reference: Reference) -> BoostSettings:
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
    costs: Any,
    foretelling: bool,
) -> Case:
    price = None if costs is None else check_costs(costs, len(costs))
    cost = {}
    if price is not None:
        cost = {name: float(weight @ price[y, cheapest(np.exp(lp), price)]) for name, lp in said.items()}
    right = {name: log_proba.argmax(axis=1) == y for name, log_proba in said.items()}
    return Case(
        domain=domain,
        kind=kind,
        signature=change.signature,
        p_value=change.p_value,
        n_rows=len(y),
        log_loss={name: float(-weight @ lp[np.arange(len(y)), y]) for name, lp in said.items()},
        accuracy={name: float(weight @ hit) for name, hit in right.items()},
        balanced={
            name: float(np.mean([np.average(hit[y == c], weights=weight[y == c]) for c in np.unique(y)]))
            for name, hit in right.items()
        },
        surprises={name: _surprise(np.exp(lp), y, weight, price) for name, lp in said.items() if foretelling},
        cost=cost,
        brier={
            name: float(weight @ ((np.exp(lp) - np.eye(lp.shape[1])[y]) ** 2).sum(axis=1))
            for name, lp in said.items()
        },
    )


def _surprise(
    proba: FloatArray, y: IntArray, weight: FloatArray, price: FloatArray | None
) -> dict[str, float]:
    """True scores less foretold ones."""
    true = weighted_scores(proba, weight[:, None] * np.eye(proba.shape[1])[y], price)
    foretold = weighted_scores(proba, weight[:, None] * proba, price)
    return {name: value - foretold[name] for name, value in true.items()}
