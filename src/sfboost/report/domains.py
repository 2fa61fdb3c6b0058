"""The page about many target domains: an overview that can be sorted, and a part of each that one opens."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

import sfboost
from sfboost.adaptation.costs import decided
from sfboost.boosting import AdaptedDomains
from sfboost.report.page import fill, source_values
from sfboost.report.training import TrainingFacts
from sfboost.shift import FeatureChange

# So many domains, the most unusual ones, have a part of their own.
_MOST_PARTS = 200


@dataclass(frozen=True)
class DomainFact:
    """One line of the overview, and the part below it.

    Attributes
    ----------
    n_changed : int
        Rows whose class is another one than by the stable features alone.
    stable, answer : float or None
        Accuracy with the labels that were given, by the stable features alone and by the answer.
    features : tuple of FeatureChange
    """

    name: str
    n_rows: int
    decision: str
    verdict: str
    adjusted: float
    n_changed: int
    stable: float | None
    answer: float | None
    reason: str
    features: tuple[FeatureChange, ...]


def domain_facts(
    many: AdaptedDomains,
    X: Any,
    domain: npt.NDArray[Any],
    y: npt.NDArray[Any] | None = None,
) -> list[DomainFact]:
    """What the page says of each domain, the most unusual ones first; `y` is for scores alone."""
    model = many.model
    stable = model.classes_[decided(model.predict_stable_proba(X), model._costs())]
    answer = many.predict(X, domain)
    place = {name: number for number, name in enumerate(many)}
    number = np.array([place[name] for name in domain.tolist()])
    known = np.zeros(len(number)) if y is None else np.array([label in many.classes_ for label in y.tolist()])

    def mean(right: npt.NDArray[Any]) -> list[float | None]:
        hits, seen = np.bincount(number, right * known), np.bincount(number, known)
        return [h / n if n else None for h, n in zip(hits.tolist(), seen.tolist(), strict=True)]

    scores = [mean(said == y) if y is not None else [None] * len(place) for said in (stable, answer)]
    changed = np.bincount(number, stable != answer)
    made = []
    for rank, row in enumerate(many.overview()):
        at, shown = place[row.name], rank < _MOST_PARTS
        shift = many[row.name].shift_
        made.append(
            DomainFact(
                str(row.name),
                row.n_rows,
                row.decision,
                row.verdict,
                row.adjusted,
                int(changed[at]),
                scores[0][at],
                scores[1][at],
                row.reason if shown else "",
                shift.unstable.features if shown and shift is not None else (),
            )
        )
    return made


def render_domains(
    facts: Sequence[DomainFact],
    training: TrainingFacts,
    title: str,
    source: str = "",
    made: str = "",
    command: str = "",
    remarks: Sequence[str] = (),
) -> str:
    """The page. Everything that came from a table is escaped, and only our own few lines of script run.

    `made` is the date to show, and `command` what was typed to make it, if any; `remarks` are on the rows.
    """
    counts = Counter(fact.decision for fact in facts)
    return fill(
        "domains.html.j2",
        source_values(training),
        facts=facts,
        title=title,
        source=source,
        made=made,
        command=command,
        remarks=remarks,
        version=sfboost.__version__,
        advice=[(counts[kind], words) for kind, words in _ADVICE.items() if counts[kind]],
        script=_SORT,
        hash=b64encode(sha256(_SORT.encode()).digest()).decode(),
        scored=any(fact.answer is not None for fact in facts),
        tested=any(fact.verdict for fact in facts),
        changed=sum(fact.verdict == "changed" for fact in facts),
        parts=[(number, fact) for number, fact in enumerate(facts, 1) if fact.reason],
    )


_ADVICE = {
    "pooled": "all features as trained",
    "adapted": "an answer fitted to what moved there",
    "kept stable": "the stable features alone",
}


_SORT = """
for (const [column, head] of [...document.querySelectorAll("thead th button")].entries())
  head.onclick = () => {
    const body = document.querySelector("tbody");
    const down = head.dataset.down = head.dataset.down === "1" ? "" : "1";
    const key = row => row.children[column].dataset.key ?? row.children[column].textContent;
    const order = (a, b) => isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b;
    const rows = [...body.rows].sort((a, b) => order(key(a), key(b)));
    body.append(...(down ? rows.reverse() : rows));
  };
"""
