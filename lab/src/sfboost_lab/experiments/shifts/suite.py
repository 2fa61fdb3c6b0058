"""The shift suite: tables whose domains are new in turn, as they are and after each kind of change."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.shifts.kinds import KINDS, Shifted
from sfboost_lab.experiments.shifts.suite_domains import suite_domains
from sfboost_lab.experiments.shifts.systems import LEARNERS, Fitted

#: Table → its number of domains.
TABLES = {
    "heart_disease": 4,
    "wine_quality": 2,
    "eicu": 4,
    "impact": 15,
    "tv16": 12,
    "gusto": 16,
    "amazon_reviews": 4,
}
#: Coloured digits → the most rows of a domain.
COLOURED = {"colored_digits": 2000, "colored_mnist": 5000}
#: The most rows of a table's domain.
MOST = 2000


def in_turn(table: str, n_domains: int, learner: str, *, own: int | None = None) -> list[Run]:
    """Return one run for each domain that is new, with all others as own domains or `own` of them, drawn.

    Examples
    --------
    >>> [run.data["new"] for run in in_turn("wine_quality", 2, "logistic")]
    [0, 1]
    """
    few = {} if own is None else {"own": own}
    return [
        Run(table, learner, 0, "shifts", data={"new": new, "most": MOST, **few}, hyper=LEARNERS[learner])
        for new in range(n_domains)
    ]


def fitted(run: Run) -> Fitted:
    """Return the own domains of a run and what is learned from them."""
    return Fitted(suite_domains(run), run.trainer, run.hyper)


def changed(run: Run, fitted: Fitted) -> Iterable[tuple[str, Shifted]]:
    """Yield the new domain after each kind of change that it can undergo."""
    (rows,) = fitted.domains.new.values()
    for number, (kind, change) in enumerate(KINDS.items()):
        rng = np.random.default_rng([run.data_seed, run.data["new"], number])
        shifted = change(rows, fitted.features, rng)
        if shifted is not None:
            yield kind, shifted
