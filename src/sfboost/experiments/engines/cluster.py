"""Ray Core tasks: this machine or many (they must share the results folder)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from typing import Any

from sfboost.experiments.work import Task, execute

_AHEAD = 4  # tasks handed over per core, so that none waits for the driver


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
            cores = None if os.environ.get("RAY_ADDRESS") else self.jobs
            quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
            ray.init(num_cpus=cores, include_dashboard=False, **quiet)
        try:
            yield from self._run(ray, tasks)
        finally:
            if ours:
                ray.shutdown()

    def _run(self, ray: Any, tasks: Iterable[Task]) -> Iterator[tuple[Task, int | None]]:
        # Ray's own retries would do runs again that are recorded; who reads the folder retries better.
        # Ray sets OMP_NUM_THREADS to the cores that a task reserves.
        remote = ray.remote(execute).options(num_cpus=self.threads, max_retries=0)
        limit = _AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        waiting = iter(tasks)
        under_way: dict[Any, Task] = {}
        more = True
        while more or under_way:
            while more and len(under_way) < limit:
                task = next(waiting, None)
                more = task is not None
                if task is not None:
                    under_way[remote.remote(task)] = task
            if not under_way:
                break
            (ready,), _ = ray.wait(list(under_way), num_returns=1)
            task = under_way.pop(ready)
            try:
                yield task, ray.get(ready)
            except ray.exceptions.RayTaskError:
                raise  # an error of ours, not of a worker
            except ray.exceptions.RayError:
                yield task, None
