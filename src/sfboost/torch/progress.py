"""What training says of itself: a bar on a terminal, or lines in the log "sfboost.torch"."""

from __future__ import annotations

import logging
import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from sfboost.notices import heard_by

if TYPE_CHECKING:
    from rich.progress import Progress

_LOG = logging.getLogger("sfboost.torch")
# Seconds of work that need no bar.
_SHORT = 1.0


@contextmanager
def shown_log(lines: int) -> Iterator[None]:
    """Show the log on the error output while training, if that is asked for and nobody has set up logging.

    Examples
    --------
    >>> with shown_log(0):
    ...     len(_LOG.handlers)
    0
    """
    if not lines or _LOG.hasHandlers():
        yield
        return
    with heard_by(logging.StreamHandler(), _LOG.name):
        yield


class TrainingProgress:
    """Tells how much is done and how long the rest will take; a context.

    Parameters
    ----------
    total : int
        Steps there will be; what a step is, a training or a batch, is the caller's.
    name : str
        Of the work.
    bar : bool
        Whether to draw a bar on the error output, if that is a terminal or (with ipywidgets) a notebook.
    lines : bool
        Whether to write a line in the log at each step.

    Examples
    --------
    >>> progress = TrainingProgress(4, "search")
    >>> progress.done = 1
    >>> progress.left(30.0)
    90.0
    """

    def __init__(self, total: int, name: str, *, bar: bool = False, lines: bool = False) -> None:
        self.total, self.name, self.done, self.lines = total, name, 0, lines
        # Bars of several processes or threads would be drawn over each other.
        alone = threading.current_thread() is threading.main_thread()
        self._wanted = bar and alone and multiprocessing.current_process().name == "MainProcess"
        self._bar: Progress | None = None
        self._start = time.monotonic()

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, what: str) -> None:
        """Count one step more."""
        self.done += 1
        self.total = max(self.total, self.done)
        seconds = time.monotonic() - self._start
        left = f"about {self.left(seconds):.0f} s left"
        if self.lines:
            _LOG.info("%s %2d of %d, %s: %s", self.name, self.done, self.total, left, what)
        if self._wanted and self._bar is None and seconds > _SHORT:
            self._bar = _new_bar(self.name)
            self._wanted = self._bar is not None
        if self._bar is not None:
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=self.done, total=self.total, what=what, left=left)

    def left(self, seconds: float) -> float:
        """Return how many seconds the rest will take, as far as one can tell after these."""
        return seconds / max(self.done, 1) * max(self.total - self.done, 0)


def _new_bar(name: str) -> Progress | None:
    """A bar that goes away when it is done; None where nobody looks at it, or nothing can draw it."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    except ImportError:
        return None
    console = Console(stderr=True)
    # In a notebook rich draws with ipywidgets.
    if not (find_spec("ipywidgets") if console.is_jupyter else console.is_terminal):
        return None
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}: {task.fields[what]}", markup=False),
    )
    # What a callback prints stays on the standard output.
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False)
    bar.add_task(name, total=None, what="", left="")
    bar.start()
    return bar
