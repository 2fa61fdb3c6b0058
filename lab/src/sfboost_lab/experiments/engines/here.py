"""One task after the other, in this process: for debugging, and the yardstick for the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from threadpoolctl import threadpool_limits

from sfboost_lab.experiments.grouped_runs import Task, execute


class InProcessEngine:
    """Does the tasks itself.

    Parameters
    ----------
    jobs : int, optional
        Must be 1 or None: there is one process.
    threads : int
        Threads of the numerical libraries.

    Examples
    --------
    >>> list(InProcessEngine().run([]))
    []
    """

    def __init__(self, jobs: int | None = None, threads: int = 1) -> None:
        if jobs not in (None, 1):
            raise ValueError(
                f"Got jobs={jobs}; the in-process engine does one task at a time. Use joblib or ray."
            )
        self.threads = threads

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, int | None]]:
        """Yield each task when it is over."""
        for task in tasks:
            with threadpool_limits(self.threads):
                written = execute(task)
            yield task, written
