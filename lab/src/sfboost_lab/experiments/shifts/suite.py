"""Ours: the shift suite. Each domain of each table is new in turn, as it is and after each kind of change."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfboost.boosting.metrics import score_predictions
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.figures import draw_dots
from sfboost_lab.experiments.grouped_runs import Group, Session
from sfboost_lab.experiments.record import Measured, Records
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.shifts.kinds import KINDS, Shifted
from sfboost_lab.experiments.shifts.suite_domains import suite_domains
from sfboost_lab.experiments.shifts.summary import tables
from sfboost_lab.experiments.shifts.systems import LEARNERS, SYSTEMS, WITH_SKADA, Fitted, strongest_name

NAME = "shifts"
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
PICTURES = {"pacs": 4}
#: Coloured digits → the most rows of a domain.
COLOURED = {"colored_digits": 2000, "colored_mnist": 5000}
#: The most rows of a table's domain.
MOST = 2000
#: Own domains that the test of a change has, besides all of them.
FEW = (2, 3)
#: Who answers at every kind of change.
ANSWERING = tuple(name for name in SYSTEMS if name not in WITH_SKADA)
#: With coloured digits there is no list of changed columns to know: colour is all there is.
COLOURING = tuple(name for name in ANSWERING if name != "drop")


def plan(seeds: int, quick: bool) -> list[Group]:
    """Return one group per table, new domain, learner and number of own domains; logistic first."""
    made = []
    counts = {"heart_disease": 4} if quick else TABLES
    for seed in range(seeds):
        for learner in ("logistic",) if quick else LEARNERS:
            for dataset, most in COLOURED.items():
                if not (quick and dataset == "colored_mnist"):
                    made.append(_group(dataset, learner, seed, quick, COLOURING, most=most))
            for dataset, n_domains in counts.items():
                made += _in_turn(dataset, n_domains, learner, seed, quick, ANSWERING)
    return made


def plan_skada(seeds: int, quick: bool) -> list[Group]:
    """Return skada's methods on the same rows."""
    counts = {"heart_disease": 4} if quick else TABLES
    return [
        group
        for seed in range(seeds)
        for dataset, n_domains in counts.items()
        for group in _in_turn(dataset, n_domains, "logistic", seed, quick, WITH_SKADA)
    ]


def plan_pictures(seeds: int, quick: bool) -> list[Group]:
    """Return the systems on features of pictures, as another table."""
    return [
        group
        for seed in range(seeds)
        for dataset, n_domains in PICTURES.items()
        for group in _in_turn(dataset, n_domains, "logistic", seed, quick, ANSWERING)
    ]


def _in_turn(
    dataset: str, n_domains: int, learner: str, seed: int, quick: bool, systems: Iterable[str]
) -> list[Group]:
    systems = tuple(systems)
    made = [_group(dataset, learner, seed, quick, systems, new=new, most=MOST) for new in range(n_domains)]
    if "best" in systems:  # what is seen with few own domains: nobody else tests for a change
        made += [
            _group(dataset, learner, seed, quick, ("best",), new=new, own=own, most=MOST)
            for own in FEW
            for new in range(n_domains)
            if own < n_domains - 1
        ]
    return made


def _group(dataset: str, learner: str, seed: int, quick: bool, systems: Iterable[str], **data: Any) -> Group:
    model = Run(dataset, learner, seed, EXPERIMENT.protocols[quick], data=data, hyper=LEARNERS[learner])
    runs = [replace(model, adapter=name, adapter_hyper=SYSTEMS[name].hyper) for name in systems]
    return Group(f"{__name__}:measure", tuple(runs))


def measure(run: Run, session: Session) -> Measured:
    """Meet every kind of change with one system; models are fitted once for all systems of the group."""
    start = time.perf_counter()
    fitted: Fitted = session.once(["fitted", run.training()], lambda: _fit(run))
    ready = time.perf_counter()
    system, metrics, decisions = SYSTEMS[run.adapter], {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a system warns of is in its decision
        for place, new in _places(run, fitted):
            answer = system.answer(fitted, new)
            metrics[place] = {**score_predictions(new.rows.y, answer.proba), "rows": float(len(new.rows))}
            if answer.p_change is not None:
                metrics[place]["p_change"] = answer.p_change
            if answer.decision is not None:
                decisions[place] = answer.decision
    return Measured(
        metrics,
        diagnostics={
            "new": ", ".join(fitted.domains.new),
            "strongest": strongest_name(fitted),
            **({"decision": decisions} if decisions else {}),
        },
        timings={"rows": ready - start, "answering": time.perf_counter() - ready},
        test_access=system.test_access,
        trained_on=tuple(sorted(set(fitted.domains.domain.tolist()))),
    )


def _fit(run: Run) -> Fitted:
    return Fitted(suite_domains(run), run.trainer, run.hyper)


def _places(run: Run, fitted: Fitted) -> Iterable[tuple[str, Shifted]]:
    """The new domain after each kind of change, the same for every system and learner; or every colouring."""
    if "new" not in run.data:
        yield from ((name, Shifted(rows)) for name, rows in fitted.domains.new.items())
        return
    (rows,) = fitted.domains.new.values()
    for number, (kind, change) in enumerate(KINDS.items()):
        rng = np.random.default_rng([run.data_seed, run.data["new"], number])
        shifted = change(rows, fitted.features, rng)
        if shifted is not None:
            yield f"test-{kind}", shifted


def figure(records: Records, path: Path) -> Path:
    """Draw the first table."""
    return draw_dots(tables(records)[0], path)


EXPERIMENT = Experiment(
    NAME,
    "Ours: tables and coloured digits as they are, and after eleven kinds of change",
    seeds=1,
    quick_seeds=1,
    plan=plan,
    tables=tables,
    figure=figure,
    files_of=(*TABLES, "colored_mnist"),
)
SKADA = replace(
    EXPERIMENT,
    name="shifts-skada",
    summary="Ours: the same with skada's methods (needs the extra `compare`)",
    plan=plan_skada,
    files_of=tuple(TABLES),
    protocol=NAME,
)
PACS = replace(
    EXPERIMENT,
    name="shifts-pacs",
    summary="Ours: the same on features of pictures",
    plan=plan_pictures,
    files_of=tuple(PICTURES),
    protocol=NAME,
)
