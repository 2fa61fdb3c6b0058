"""Engines: where tasks are done. The records are the same from each.

An engine takes tasks and yields each when it is over, with the number of records written, or with None if
the worker died before it could say. It neither reads nor writes records: the folder is the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from sfboost_lab.experiments.engines.cluster import RayEngine
from sfboost_lab.experiments.engines.here import InProcessEngine
from sfboost_lab.experiments.engines.processes import JoblibEngine
from sfboost_lab.experiments.grouped_runs import Task


class SweepEngine(Protocol):
    """What does tasks."""

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, int | None]]:
        """Do all tasks, in any order; yield (task, records written, or None if its worker died)."""
        ...


ENGINES: dict[str, Callable[..., SweepEngine]] = {
    "joblib": JoblibEngine,
    "ray": RayEngine,
    "in-process": InProcessEngine,
}


def make_engine(name: str, *, jobs: int | None = None, threads: int = 1) -> SweepEngine:
    """Return an engine by name.

    Parameters
    ----------
    name : {"joblib", "ray", "in-process"}
    jobs : int, optional
        Tasks at a time; by default as many as there are cores.
    threads : int
        Threads of the numerical libraries in each.

    Examples
    --------
    >>> type(make_engine("joblib", jobs=2)).__name__
    'JoblibEngine'
    """
    if name not in ENGINES:
        raise ValueError(f"Got engine {name!r}; there are {', '.join(ENGINES)}.")
    return ENGINES[name](jobs=jobs, threads=threads)


__all__ = ["ENGINES", "InProcessEngine", "JoblibEngine", "RayEngine", "SweepEngine", "make_engine"]
