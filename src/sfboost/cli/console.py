"""What a command says, where, and with which exit code it ends.

Results go to standard output, everything else to standard error. 0: done. 1: something unexpected. 2: wrong
usage or bad input. 3: `--require-adapted` was asked and the stable predictor was kept.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import typer
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from sfboost.adaptation import AdaptationWarning
from sfboost.cli.pipes import Console, silence

UNEXPECTED, BAD_INPUT, NOT_ADAPTED, INTERRUPTED = 1, 2, 3, 130
Command = TypeVar("Command", bound=Callable[..., Any])

EXIT_CODES = (
    "Exit codes: 0 done; 1 unexpected; 2 wrong usage or bad input; "
    "3 the stable predictor was kept although --require-adapted was given."
)


@dataclass(frozen=True)
class Voice:
    """How to talk: nothing but errors (`quiet`), one JSON object (`as_json`), or sentences.

    Attributes
    ----------
    to_pipe : bool
        Whether a table goes to standard output, so that words must not.
    """

    quiet: bool = False
    as_json: bool = False
    to_pipe: bool = False

    def __post_init__(self) -> None:
        if self.as_json and self.to_pipe:
            raise ValueError("--json and -o - both want standard output: write the table to a file.")

    def note(self, *sentences: str) -> None:
        """Say something on the side."""
        if not self.quiet:
            for sentence in sentences:
                self._print(f"[yellow]note:[/] {_plain(sentence)}", error=True)

    def result(self, values: dict[str, Any], text: str) -> None:
        """Give the result: `values` with --json, else `text` (rich markup)."""
        if self.as_json:
            print(json.dumps(_finite(values), ensure_ascii=False, allow_nan=False))
        elif not self.quiet:
            self._print(text, error=self.to_pipe)

    def _print(self, text: str, *, error: bool) -> None:
        # Not wrapped: a pipe is no screen, and a terminal wraps by itself.
        Console(stderr=error, soft_wrap=True, highlight=False).print(text)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show on a terminal that something is going on."""
        console = Console(stderr=True)
        if self.quiet or not console.is_terminal:
            yield
            return
        with console.status(what):
            yield

    def progress(self) -> Progress:
        """A bar with rate and time left, on a terminal."""
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), _Rate(), TimeRemainingColumn())
        return Progress(*columns, console=console, disable=self.quiet or not console.is_terminal)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        rate = "" if task.speed is None else f", {task.speed:,.0f} rows/s"
        return Text(f"{task.completed:,.0f} rows{rate}")


def speaking(command: Command) -> Command:
    """Turn errors into a sentence and an exit code; `--debug` shows the traceback."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        debug = options.get("debug") or os.environ.get("SFBOOST_DEBUG")
        try:
            with warnings.catch_warnings():
                # The decision and its reason are part of the result.
                warnings.simplefilter("ignore", AdaptationWarning)
                warnings.showwarning = _noting(Voice(quiet=bool(options.get("quiet"))))
                return command(*args, **options)
        except BrokenPipeError:
            # The reader has had enough, as `head` has. Python must not complain when it flushes at exit.
            silence(sys.stdout)
            return None
        except KeyboardInterrupt:
            _stop("Interrupted; no file was changed.", INTERRUPTED)
        except (ValueError, OSError, ImportError) as error:
            if debug:
                traceback.print_exc()
            _stop(str(error), BAD_INPUT)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if debug:
                traceback.print_exc()
            _stop(
                f"Unexpected {type(error).__name__}: {error}\nThis is a fault of sfboost: please report it "
                "with what --debug shows.",
                UNEXPECTED,
            )

    return run  # type: ignore[return-value]


def _noting(voice: Voice) -> Callable[..., None]:
    """Warnings of the libraries below as notes: without the path of a file that no reader can mend."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        voice.note(str(message))

    return show


def _stop(sentence: str, code: int) -> None:
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"[red]error:[/] {_plain(sentence)}")
    raise typer.Exit(code)


def _plain(text: str) -> str:
    """Text without meaning as rich markup."""
    return text.replace("[", r"\[")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if hasattr(value, "tolist"):
        return _finite(value.tolist())
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value
