"""Ctrl-C and requests to end: the command stops, cleans up behind itself, and says what is true.

Only the standard library is needed here, since an interruption may come before anything else is imported.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from threading import Timer
from typing import Any

#: What ends the command: Ctrl-C, a request (of a batch system, of `kill`), a terminal that was closed.
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
#: `timeout` and some shells send the same signal twice; later, a person is tired of waiting.
_PATIENCE = 1.0
INTERRUPTED = 128 + signal.SIGINT

_caught: dict[str, Any] = {"number": 0, "since": 0.0}


class Interrupted(KeyboardInterrupt):
    """A signal to end; `code` is what a shell expects afterwards."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.code = 128 + number


def catch_signals() -> None:
    """Turn the signals that end a process into an `Interrupted`; those that it was told to ignore stay so."""
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    sys.unraisablehook = _send_again


def was_interrupted() -> bool:
    """Whether a signal came. Compiled code may turn its exception into another one."""
    return bool(_caught["number"])


def let_go() -> None:
    """From here on a signal ends the process at once and without a word."""
    for number in _SIGNALS:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, frame: Any) -> None:
    if was_interrupted() and time.monotonic() - _caught["since"] <= _PATIENCE:
        return
    if was_interrupted():  # while it cleans up: as if nobody had caught it
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
    _caught.update(number=number, since=time.monotonic())
    raise Interrupted(number)


def _send_again(unraisable: Any) -> None:
    """A signal that came while Python cleaned up an object, where nothing can be raised, comes once more."""
    if not isinstance(unraisable.exc_value, Interrupted):
        sys.__unraisablehook__(unraisable)
        return
    number, _caught["number"] = _caught["number"], 0
    again = Timer(0.01, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()
