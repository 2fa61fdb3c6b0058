"""The table of own domains: what would have been decided in each, and what that would have meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfboost.adaptation.scores import LOSSES
from sfboost.boosting import METRICS
from sfboost.boosting.scored_domains import ANSWER, COMPARED, SKIPPED


@dataclass(frozen=True)
class OwnDomain:
    """One own domain as the new one, or the mean of them; None is what is not known.

    Attributes
    ----------
    scores : mapping of str to float or None
        By method, in `metric`; "answer" is what was given.
    answer : mapping of str to float or None
        Every score of the answer.
    regret : float or None
        By how much the best candidate is better than the answer.
    candidate : str
        That candidate.
    metric : str
        By which answers are compared.
    unclear : bool
        Whether nobody could tell if a meaning changed.
    skipped : str
        Why it could not play, if it could not.
    """

    name: str
    n_rows: int
    decision: str
    p_value: float | None
    scores: Mapping[str, float | None]
    answer: Mapping[str, float | None]
    regret: float | None
    candidate: str = ""
    metric: str = "accuracy"
    unclear: bool = False
    skipped: str = ""

    @property
    def best(self) -> float | None:
        """The best score that was had without labels."""
        known = [self.scores.get(method) for method in COMPARED[:-1]]
        choose = min if self.metric in LOSSES else max
        return choose((value for value in known if value is not None), default=None)


def own_domains(evaluation: Sequence[Mapping[str, Any]]) -> list[OwnDomain]:
    """The domains in their order; `evaluation` has one record for each domain and method."""
    by_name: dict[str, dict[str, Mapping[str, Any]]] = {}
    for record in evaluation:
        by_name.setdefault(str(record["domain"]), {})[record["method"]] = record
    told = []
    for name, records in by_name.items():
        answer = records[ANSWER]
        metric = str(answer["metric"])
        told.append(
            OwnDomain(
                name=name,
                n_rows=int(answer["n_rows"]),
                decision=str(answer["decision"]),
                p_value=answer["p_value"],
                scores={method: record[metric] for method, record in records.items()},
                answer={name: answer[name] for name in METRICS},
                regret=answer["regret"],
                candidate=answer["best"],
                metric=metric,
                unclear=answer["unclear"],
                skipped=str(answer.get("reason", "")) if answer["decision"] == SKIPPED else "",
            )
        )
    return told


def mean_of(domains: Sequence[OwnDomain]) -> OwnDomain:
    """The mean, each domain counting the same; what is not known of a domain is left out."""
    return OwnDomain(
        name="mean",
        n_rows=sum(domain.n_rows for domain in domains),
        decision="",
        p_value=None,
        scores={m: _mean(domain.scores.get(m) for domain in domains) for m in COMPARED},
        answer={metric: _mean(domain.answer[metric] for domain in domains) for metric in METRICS},
        regret=_mean(domain.regret for domain in domains),
        metric=domains[0].metric,
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
