"""How far training is: a bar on a terminal or in a notebook."""

from __future__ import annotations

import multiprocessing
import threading
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.progress import Progress

# Seconds of work that need no bar.
_SHORT = 1.0


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

    Examples
    --------
    >>> progress = TrainingProgress(4, "search")
    >>> progress.done = 1
    >>> progress.left(30.0)
    90.0
    """

    def __init__(self, total: int, name: str, *, bar: bool = False) -> None:
        self.total, self.name, self.done = total, name, 0
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
