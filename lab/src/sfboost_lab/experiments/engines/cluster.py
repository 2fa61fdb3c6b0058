"""Ray Core tasks: this machine or many (they must share the results folder)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from typing import Any

from sfboost_lab.experiments.grouped_runs import Task, execute

_AHEAD = 4  # Ray tasks handed over per core, so that none waits for the driver
_BUNDLES, _LARGEST = 50, 10  # Ray tasks per core, if there are that many; our tasks in one of them at most


class RayEngine:
    """Does the tasks as Ray tasks. Joins the cluster that RAY_ADDRESS names, else starts Ray here.

    Parameters
    ----------
    jobs : int, optional
        Cores of a Ray that is started here; by default all.
    threads : int
        Threads of the numerical libraries in each task; a task reserves as many cores.

    Examples
    --------
    >>> RayEngine(jobs=2).threads
    1
    """

    def __init__(self, jobs: int | None = None, threads: int = 1) -> None:
        self.jobs = jobs
        self.threads = threads

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, int | None]]:
        """Yield each task when it is over."""
        try:
            import ray
        except ImportError as error:
            raise ImportError(
                "The ray engine needs Ray. Install it with: pip install 'sfboost[ray]'."
            ) from error
        ours = not ray.is_initialized()
        if ours:
            # Unless a cluster is named we start our own, whatever another one has left on this machine.
            where = os.environ.get("RAY_ADDRESS")
            cores = None if where else self.jobs
            quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
            ray.init(address=where or "local", num_cpus=cores, include_dashboard=False, **quiet)
        try:
            yield from self._run(ray, tasks)
        finally:
            if ours:
                ray.shutdown()

    def _run(self, ray: Any, tasks: Iterable[Task]) -> Iterator[tuple[Task, int | None]]:
        # Ray's own retries would do runs again that are recorded; who reads the folder retries better.
        # Ray sets OMP_NUM_THREADS to the cores that a task reserves.
        remote = ray.remote(_execute_all).options(num_cpus=self.threads, max_retries=0)
        cores = max(int(ray.cluster_resources().get("CPU", 1)), 1)
        waiting = _bundles(list(tasks), cores)
        under_way: dict[Any, list[Task]] = {}
        while waiting or under_way:
            while waiting and len(under_way) < _AHEAD * cores:
                bundle = waiting.pop(0)
                under_way[remote.remote(bundle)] = bundle
            (ready,), _ = ray.wait(list(under_way), num_returns=1)
            bundle = under_way.pop(ready)
            try:
                yield from zip(bundle, ray.get(ready), strict=True)
            except ray.exceptions.RayTaskError:
                raise  # an error of ours, not of a worker
            except ray.exceptions.RayError:
                yield from ((task, None) for task in bundle)


def _bundles(tasks: list[Task], cores: int) -> list[list[Task]]:
    """Thousands of small tasks go in bundles: a Ray task costs some milliseconds, whatever it does."""
    size = min(max(len(tasks) // (_BUNDLES * cores), 1), _LARGEST)
    return [tasks[first : first + size] for first in range(0, len(tasks), size)]


def _execute_all(tasks: list[Task]) -> list[int]:
    return [execute(task) for task in tasks]
