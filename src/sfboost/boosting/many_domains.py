"""Adapting to many new domains at once: heads that lean on each other, and the best answer for each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sfboost.adaptation import AdaptationRefused, Training
from sfboost.adaptation.checks import check_unstable
from sfboost.adaptation.decision import Amount, refusals
from sfboost.adaptation.settings import Choices
from sfboost.adaptation.standardize import Standardizer
from sfboost.answers import AnswerRows
from sfboost.answers.candidates import BoostSettings
from sfboost.answers.many import ManyAnswers
from sfboost.boosting.adapted_domains import AdaptedDomains
from sfboost.diagnostics.by_domain import check_domain, domain_numbers, rows_by_domain
from sfboost.marginal import PseudoLabelStatistics
from sfboost.marginal.probabilities import FloatArray
from sfboost.notices import warn
from sfboost.pooling import fit_pooled_heads


def adapt_domains(
    model: Any,
    stable: FloatArray,
    unstable: Any,
    sample_domain: Any,
    training: Training,
    answer: str,
    choices: Choices,
    rows: AnswerRows | None = None,
    note: str | None = None,
) -> AdaptedDomains:
    """An answer for each domain that `sample_domain` names.

    `rows` are wanted for answer="best"; `note` is what else is to be said of the answer.
    """
    if choices.head is not None or choices.transport != "posterior":
        raise ValueError(
            'sample_domain needs the default head and transport="posterior": leave `unstable` and `settings` '
            "out, or adapt to one domain at a time."
        )
    names = check_domain(sample_domain, len(stable))
    domains, number = domain_numbers(names)
    by_domain = [mine for _, mine in rows_by_domain(names)]
    sizes = [len(mine) for mine in by_domain]
    X = check_unstable(unstable, n_rows=len(stable))
    X = X.toarray() if hasattr(X, "toarray") else X
    standardizer = Standardizer.fit(X, np.ones(len(X)))
    statistics = PseudoLabelStatistics.from_proba(stable)
    reason = _why_not(Amount(statistics, len(X), X.shape[1], statistics.prior), training, answer)
    best = None
    if answer == "best":
        assert rows is not None
        rows = replace(rows, positions=np.arange(len(names)))
        experience = training.experience
        best = ManyAnswers.choose(
            rows,
            by_domain,
            experience,
            BoostSettings(replace(choices, together=True), experience.reference.prior, model.classes_),
            can_boost=not reason,
            doubt=model._doubt(),
        )
    elif reason:
        warn(
            f"The stable predictor was kept: {reason}. Pass answer='paper' to adapt all the same.",
            AdaptationRefused,
        )
    heads = None
    needed = np.arange(len(domains)) if best is None else best.needs_heads
    if not reason and needed is not None:
        known, Z = training.heads_in(standardizer), standardizer.apply(X)
        turned = changed = np.empty(0, dtype=np.intp)
        if best is not None:
            turned, changed = best.heads_beside(training.experience)
        usual = np.setdiff1d(needed, turned)
        if len(usual) or not len(turned):
            heads = fit_pooled_heads(stable, Z, number, len(domains), known, usual)
        if len(turned):
            anew = fit_pooled_heads(stable, Z, number, len(domains), None, turned, changed)
            heads = anew if heads is None else heads.with_some_of(anew, turned)
    leak = training.leak if answer == "safe" else None
    return AdaptedDomains(
        model, heads, standardizer, statistics, domains, sizes, leak, reason or note or "", best
    )


def _why_not(amount: Amount, training: Training, answer: str) -> str:
    """Why to learn no heads for any domain: their rows together are too few for one head."""
    if answer == "paper":
        return ""
    if doubts := refusals(amount, training.evidence):
        return "; ".join(doubts)
    if answer == "safe" and training.leak is None:
        return f"its leak could not be measured ({training.leak_source}); pass leak=δ if you know a bound"
    return ""
