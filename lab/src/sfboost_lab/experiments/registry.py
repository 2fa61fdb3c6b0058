"""The experiments, found by name: one explicit list. A new one is one module and one line here."""

from __future__ import annotations

from sfboost_lab.experiments.engines import Group
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.registry import Registry

_HERE = "sfboost_lab.experiments."

EXPERIMENTS: Registry[Experiment] = Registry(
    "experiment",
    {
        "synthetic": _HERE + "synthetic:EXPERIMENT",
        "cmnist": _HERE + "cmnist:EXPERIMENT",
        "cmnist-domains": _HERE + "cmnist:DOMAINS",
        "ablations": _HERE + "cmnist_parts:ABLATIONS",
        "penalties": _HERE + "cmnist_parts:PENALTY_EXPERIMENT",
        "pacs": _HERE + "pictures:PACS",
        "camelyon17": _HERE + "pictures:CAMELYON17",
        "corrections": _HERE + "known_columns:CORRECTIONS",
        "sample-size": _HERE + "known_columns:SAMPLE_SIZE",
    },
)
"""Every experiment by name."""


def planned_groups(protocol: str, *, quick: bool = False, seeds: int = 0) -> list[Group]:
    """Return the groups of the experiments of one protocol, each once; of more seeds than usual if told.

    Examples
    --------
    >>> len(planned_groups("corrections"))  # three data sets, fifty seeds
    150
    """
    own = [experiment for experiment in EXPERIMENTS.values() if experiment.protocols[0] == protocol]
    plans = [e.plan(max(seeds, e.quick_seeds if quick else e.seeds), quick) for e in own]
    return list(dict.fromkeys(group for plan in plans for group in plan))


def planned_runs(protocol: str, *, quick: bool = False, seeds: int = 0) -> set[str]:
    """Return the ids of all runs of these groups.

    Examples
    --------
    >>> len(planned_runs("corrections")) == len(planned_runs("corrections", quick=True))
    False
    """
    groups = planned_groups(protocol, quick=quick, seeds=seeds)
    return {run.id for group in groups for run in group.runs}
