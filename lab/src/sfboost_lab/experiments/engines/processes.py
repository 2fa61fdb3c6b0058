"""Processes of this machine by joblib: the default."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from joblib import Parallel, cpu_count, delayed, parallel_config

from sfboost_lab.experiments.grouped_runs import Task, execute


class JoblibEngine:
    """Does the tasks in worker processes.

    Parameters
    ----------
    jobs : int, optional
        Processes; by default one per core.
    threads : int
        Threads of the numerical libraries in each.

    Examples
    --------
    >>> JoblibEngine(jobs=3).jobs
    3
    """

    def __init__(self, jobs: int | None = None, threads: int = 1) -> None:
        self.jobs = jobs or cpu_count()
        self.threads = threads

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, int | None]]:
        """Yield each task when it is over; all that were under way count as lost when a worker dies."""
        waiting = iter(enumerate(tasks))
        under_way: dict[int, Task] = {}

        def dispatched() -> Iterator[Any]:
            for number, task in waiting:
                under_way[number] = task
                yield delayed(_numbered)(number, task, os.getpid())

        lost = True
        while lost:
            lost = False
            with (
                parallel_config("loky", n_jobs=self.jobs, inner_max_num_threads=self.threads),
                warnings.catch_warnings(),
            ):
                # joblib warns before the error that we handle.
                warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
                try:
                    for number, written in Parallel(return_as="generator_unordered")(dispatched()):
                        yield under_way.pop(number), written
                except BrokenProcessPool:
                    lost = True
            if lost:
                for number in list(under_way):
                    yield under_way.pop(number), None


def _numbered(number: int, task: Task, sweep: int) -> tuple[int, int]:
    # With one job joblib works in the process of the sweep itself, which may well outlive its own parent.
    return number, execute(task, lambda: sweep not in (os.getpid(), os.getppid()))
