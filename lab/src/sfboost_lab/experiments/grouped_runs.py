"""The unit of work: a group of runs that share training, and what a worker does with it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from sfboost.registry import import_named
from sfboost_lab.experiments.cache import Arrays, Cache
from sfboost_lab.experiments.origin import origin
from sfboost_lab.experiments.record import Measured, Record, versions
from sfboost_lab.experiments.run import Run, digest
from sfboost_lab.experiments.store import Store


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
            measured, error = _find(task.group.measure)(run, session), None
        except Exception:
            measured, error = None, traceback.format_exc()
        store.append([Record(run, measured, time.perf_counter() - start, versions(), error, origin())])
        written += 1
    return written


def _find(name: str) -> Callable[[Run, Session], Measured]:
    found: Callable[[Run, Session], Measured] = import_named(name)
    return found
