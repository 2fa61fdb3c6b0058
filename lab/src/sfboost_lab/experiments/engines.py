"""Groups of runs that share training, and the engines that do them: here, or in processes.

An engine takes tasks and yields each when it is over, with the number of records written, or with None if the
worker died before it could say. It neither reads nor writes records: the folder is the truth, and the records
are the same from each engine.
"""

from __future__ import annotations

import os
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt
from joblib import Parallel, cpu_count, delayed, parallel_config
from threadpoolctl import threadpool_limits

from sfboost.registry import import_named
from sfboost_lab.experiments.origin import origin
from sfboost_lab.experiments.run import Run, digest
from sfboost_lab.experiments.store import Arrays, Cache, Record, Store, versions


@dataclass(frozen=True)
class Group:
    """Runs that one worker does one after the other because they share work.

    Parameters
    ----------
    measure : str
        The function ``(run, session) -> Measured``, as "module:function": a worker imports it by name.
    runs : tuple of Run
        Neighbours should share the most.

    Examples
    --------
    >>> group = Group("module:function", (Run("ac", "erm", seed=0, protocol="doc"),))
    >>> len(group.runs)
    1
    """

    measure: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Task:
    """A group, the folder its records go to, and which of its runs are wanted no more."""

    group: Group
    folder: Path
    skip: frozenset[str] = frozenset()

    @property
    def todo(self) -> tuple[Run, ...]:
        """The runs that are still to be done, each once."""
        return tuple(run for run in dict.fromkeys(self.group.runs) if run.id not in self.skip)


class Session:
    """What the runs of a group share while they are measured.

    Parameters
    ----------
    group : Group
        All of its runs, also those that are done: what trains together trains the same after a restart.
    cache : Cache
        Where `arrays` are kept.

    Examples
    --------
    >>> session = Session(Group("module:function", ()), Cache("nowhere"))
    >>> session.once("rows", lambda: [1, 2]) is session.once("rows", lambda: [1, 2])
    True
    """

    def __init__(self, group: Group, cache: Cache) -> None:
        self.group = group
        self.cache = cache
        self._made: dict[str, tuple[Any, Exception | None]] = {}
        self._latest: dict[str, tuple[str, Any]] = {}

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Make something once for the whole group; if that fails, it fails the same way for all."""
        name = digest(key)
        if name not in self._made:
            try:
                self._made[name] = (make(), None)
            except Exception as error:
                self._made[name] = (None, error)
        value, failure = self._made[name]
        if failure is not None:
            raise failure
        return value

    def latest(self, slot: str, key: Any, make: Callable[[], Any]) -> Any:
        """Make something and keep it until another key comes: for what is too large to keep for all runs."""
        name = digest(key)
        if self._latest.get(slot, (None,))[0] != name:
            self._latest.pop(slot, None)  # let go of the old one first
            self._latest[slot] = (name, make())
        return self._latest[slot][1]

    def arrays(self, key: Any, make: Callable[[], Mapping[str, npt.NDArray[Any]]]) -> Arrays:
        """Make arrays once for all groups and all sweeps of this folder."""
        found: Arrays = self.once(["arrays", key], lambda: self.cache.get(key, make))
        return found


#: Open segments of this process, one per results folder.
_stores: dict[Path, Store] = {}


def execute(task: Task, orphaned: Callable[[], bool] = lambda: False) -> int:
    """Do the runs of a task and write a record after each; return how many were written.

    A run that fails is recorded with its traceback, and the next one follows. A worker whose sweep has died
    stops after the run at hand.
    """
    store = _stores.setdefault(task.folder, Store(task.folder))
    session = Session(task.group, Cache(task.folder / "cache"))
    written = 0
    for run in task.todo:
        if orphaned():
            break
        start = time.perf_counter()
        try:
            measured, error = import_named(task.group.measure)(run, session), None
        except Exception:
            measured, error = None, traceback.format_exc()
        store.append([Record(run, measured, time.perf_counter() - start, versions(), error, origin())])
        written += 1
    return written


class InProcessEngine:
    """Does the tasks itself.

    Parameters
    ----------
    threads : int
        Threads of the numerical libraries.

    Examples
    --------
    >>> list(InProcessEngine().run([]))
    []
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, int | None]]:
        """Yield each task when it is over."""
        for task in tasks:
            with threadpool_limits(self.threads):
                written = execute(task)
            yield task, written


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


class SweepEngine(Protocol):
    """What does tasks."""

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, int | None]]:
        """Do all tasks, in any order; yield (task, records written, or None if its worker died)."""
        ...


def make_engine(jobs: int | None = None, threads: int = 1) -> SweepEngine:
    """Return what does so many tasks at a time, by default as many as there are cores.

    Examples
    --------
    >>> type(make_engine(1)).__name__, type(make_engine(2)).__name__
    ('InProcessEngine', 'JoblibEngine')
    """
    return InProcessEngine(threads) if jobs == 1 else JoblibEngine(jobs, threads)
