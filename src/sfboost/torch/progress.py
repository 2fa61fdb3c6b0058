"""How far the search is, on one line of the terminal."""

from __future__ import annotations

import sys
import time


class TrainingProgress:
    """Tells how many trainings are done and how long the rest will take.

    Parameters
    ----------
    total : int
        Trainings there will be.
    shown : bool
        Whether anything is written; to the error output, so that results stay clean.

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
        if not self.shown:
            return
        line = self.line(self.done, time.monotonic() - self._start, name)
        if sys.stderr.isatty():
            end = "\n" if self.done >= self.total else ""
            print(f"\r{line:<100.100}", end=end, file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def line(self, done: int, seconds: float, name: str) -> str:
        """Return what is written after some trainings and seconds."""
        left = seconds / max(done, 1) * max(self.total - done, 0)
        return f"search {done:2d} of {self.total}, about {left:.0f} s left: {name}"
