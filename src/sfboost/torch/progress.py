"""What training says of itself, in the log "sfboost.torch"."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sfboost.notices import heard_by

_LOG = logging.getLogger("sfboost.torch")


@contextmanager
def shown_log(verbose: int) -> Iterator[None]:
    """Show the log on the error output while training, if that is asked for and nobody has set up logging.

    Examples
    --------
    >>> with shown_log(0):
    ...     len(_LOG.handlers)
    0
    """
    if not verbose or _LOG.hasHandlers():
        yield
        return
    with heard_by(logging.StreamHandler(), _LOG.name):
        yield


class TrainingProgress:
    """Tells how many trainings are done and how long the rest will take.

    Parameters
    ----------
    total : int
        Trainings there will be.
    shown : bool
        Whether anything is said.

    Examples
    --------
    >>> TrainingProgress(4, shown=False).line(1, 30.0, "narrow, grey")
    'search  1 of 4, about 90 s left: narrow, grey'
    """

    def __init__(self, total: int, *, shown: bool) -> None:
        self.total, self.shown, self.done = total, shown, 0
        self._start = time.monotonic()

    def step(self, name: str) -> None:
        """Count one training more."""
        self.done += 1
        self.total = max(self.total, self.done)
        if self.shown:
            _LOG.info("%s", self.line(self.done, time.monotonic() - self._start, name))

    def line(self, done: int, seconds: float, name: str) -> str:
        """Return what is written after some trainings and seconds."""
        left = seconds / max(done, 1) * max(self.total - done, 0)
        return f"search {done:2d} of {self.total}, about {left:.0f} s left: {name}"
