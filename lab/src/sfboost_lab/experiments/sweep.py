"""A sweep: do what the folder does not hold yet, survive what dies on the way."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sfboost_lab.experiments.engines import Group, InProcessEngine, SweepEngine, Task
from sfboost_lab.experiments.origin import origin
from sfboost_lab.experiments.store import Contents, Record, Records, Store, versions

_CHANCES = 2
_DIED = (
    f"The worker process died {_CHANCES + 1} times at this run or at one it shares work with, most likely "
    "for want of memory. Do fewer at a time, then retry the failed runs."
)


@dataclass(frozen=True)
class Progress:
    """How far a sweep is.

    Attributes
    ----------
    total, before : int
        Runs in all; runs that the folder held before.
    """

    total: int
    before: int


def sweep(
    groups: Sequence[Group],
    folder: str | os.PathLike[str],
    engine: SweepEngine | None = None,
    *,
    retry_failed: bool = False,
    on_start: Callable[[Progress], None] | None = None,
) -> Contents:
    """Do every run that has no record yet, and return all records of these groups.

    Parameters
    ----------
    groups : sequence of Group
        A run that is in several is done once.
    folder : path
        Where records and shared work are kept.
    engine : SweepEngine, optional
        By default this process.
    retry_failed : bool
        Do failed runs again.
    on_start : callable, optional
        Told once how much there is to do.

    Returns
    -------
    Contents

    Notes
    -----
    When a worker dies, the tasks that were under way come again at the end, one at a time, so that it is
    clear which of them kills; after two chances its runs are recorded as failed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sweep([], folder).records
    {}
    """
    store, engine = Store(folder), engine or InProcessEngine()
    with store.lock():
        before = store.read().records
        tasks = _tasks(groups, store, before, retry_failed)
        total = len({run.id for group in groups for run in group.runs})
        if on_start is not None:
            on_start(Progress(total, total - sum(len(task.todo) for task in tasks)))
        lost = [task for task, written in engine.run(tasks) if written != len(task.todo)]
        for task in lost:
            _again(task, engine, store, before)
        store.close()
    contents = store.read()
    wanted = {run.id for group in groups for run in group.runs}
    found = {name: record for name, record in contents.records.items() if name in wanted}
    return Contents(found, contents.torn, contents.damaged)


def _tasks(groups: Sequence[Group], store: Store, records: Records, retry_failed: bool) -> list[Task]:
    settled = {name for name, record in records.items() if record.ok or not retry_failed}
    tasks = []
    for group in groups:
        skip = frozenset(run.id for run in group.runs if run.id in settled)
        task = Task(group, Path(store.folder).absolute(), skip)
        settled.update(run.id for run in task.todo)  # another group that has it too leaves it to this one
        if task.todo:
            tasks.append(task)
    return tasks


def _again(task: Task, engine: SweepEngine, store: Store, before: Records) -> None:
    """Do what is left of a task alone; a run at which the worker dies again and again has failed."""
    deaths = given_up = 0
    while (task := _rest(task, store, before)).todo:
        first = task.todo[0]
        if all(written is not None for _, written in engine.run([task])):
            return
        deaths = deaths + 1 if first in _rest(task, store, before).todo else 0
        if deaths == _CHANCES:
            # Two in a row: what kills is what the group shares.
            lost = task.todo if given_up else (first,)
            store.append([Record(run, None, 0.0, versions(), _DIED, origin()) for run in lost])
            task = Task(task.group, task.folder, task.skip | {run.id for run in lost})
            deaths, given_up = 0, given_up + 1


def _rest(task: Task, store: Store, before: Records) -> Task:
    """What has no record of this sweep yet; a run that failed in it has one."""
    records = store.read().records
    done = {name for name, record in records.items() if record.ok or record != before.get(name)}
    return Task(task.group, task.folder, task.skip | done)
