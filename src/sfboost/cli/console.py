"""What a command says, where, and with which exit code it ends.

Results go to standard output, everything else to standard error. 0: done. 1: something unexpected. 2: wrong
usage or bad input. 3: `--require-adapted` was asked and the stable features alone answer. 130: interrupted.

Every word goes out through `say`, `cell` or `give`, which write out what cannot be seen. There is no markup:
in a name it would be somebody else's.
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

import rich.console
import typer
from rich.text import Text

from sfboost.foreign_text import is_unseen, plain
from sfboost.json_values import json_values
from sfboost.notices import heard_by


class Console(rich.console.Console):
    """A console that goes on in silence when nobody reads any more; rich's own ends the process with 1."""

    def on_broken_pipe(self) -> None:
        """Let what follows go nowhere."""
        silence(self.file)


def silence(stream: Any) -> None:
    """Send what is still to be written to `stream` nowhere, also what Python writes when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


Command = TypeVar("Command", bound=Callable[..., Any])


def spread(command: Command) -> Command:
    """Show typer the fields of every group that the command takes; hand the group itself to the command.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int
    ...     height: int = 2
    >>> def area(size: Size) -> int:
    ...     return size.width * size.height
    >>> spread(area)(width=3, height=2), list(inspect.signature(spread(area)).parameters)
    (6, ['width', 'height'])
    """
    asked = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: part.annotation for name, part in asked.items() if is_dataclass(part.annotation)
    }
    if not groups:
        return command
    shown = [
        part.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, own in asked.items()
        for part in (_parameters(groups[name]) if name in groups else (own,))
    ]

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**given, **made)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {part.name: part.annotation for part in shown}
    return run  # type: ignore[return-value]


def _parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


UNEXPECTED, BAD_INPUT, NOT_ADAPTED, INTERRUPTED = 1, 2, 3, 130
#: One line: words, and pairs of words and their style.
Line = str | tuple[str | tuple[str, str], ...]

EXIT_CODES = (
    "Exit codes: 0 done; 1 unexpected; 2 wrong usage or bad input; "
    "3 the stable features alone answer although --require-adapted was given."
)


def say(*lines: Line, error: bool = False) -> None:
    """Print lines. A line break within one is part of somebody's name, and written out."""
    # Not wrapped: a pipe is no screen, and a terminal wraps by itself.
    console = Console(stderr=error, soft_wrap=True, highlight=False)
    for line in lines:
        console.print(cell(line))


def cell(line: Line) -> Text:
    r"""Words for a table or a bar of rich.

    Examples
    --------
    >>> cell(("x[/]", ("\x1b[2J", "bold"))).plain
    'x[/]\\x1b[2J'
    """
    parts = (line,) if isinstance(line, str) else line
    return Text.assemble(
        *(plain(part) if isinstance(part, str) else (plain(part[0]), part[1]) for part in parts)
    )


def give(text: str) -> None:
    """Print what a program may read, such as a path or a table: as it is, but for terminals."""
    sys.stdout.write(plain(text, keep="\n") if sys.stdout.isatty() else text)


def complain(sentence: str) -> None:
    """Say what is wrong."""
    say((("error:", "red"), f" {sentence}"), error=True)


def screen(*, error: bool = False) -> Console:
    """Where rich draws tables. A pipe is not a screen of 80 columns: tables for scripts are not cut."""
    console = Console(stderr=error)
    return console if console.is_terminal else Console(stderr=error, width=160)


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
                say((("note:", "yellow"), f" {sentence}"), error=True)

    def result(self, values: dict[str, Any], *lines: Line) -> None:
        """Give the result: `values` with --json, else `lines`."""
        if self.as_json:
            text = json.dumps(json_values(values), ensure_ascii=False, allow_nan=False)
            # JSON has its own way of writing out.
            print("".join(json.dumps(letter)[1:-1] if is_unseen(letter) else letter for letter in text))
        elif not self.quiet:
            say(*lines, error=self.to_pipe)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Say on a terminal what is going on, with the progress that the library logs."""
        console = Console(stderr=True)
        if self.quiet or not console.is_terminal:
            yield
            return
        with console.status(what) as status, heard_by(_Teller(status.update)):
            yield


class _Teller(logging.Handler):
    """Shows what the library tells of its progress."""

    def __init__(self, show: Callable[[Text], None]) -> None:
        super().__init__(logging.INFO)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        """Show one step of progress."""
        self._show(cell(record.getMessage()))


def speaking(command: Command) -> Command:
    """Turn errors into a sentence and an exit code, warnings into notes; `--debug` shows the traceback.

    Groups of options become what typer reads.
    """
    command = spread(command)

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        voice = Voice(quiet=bool(options.get("quiet")))
        try:
            with warnings.catch_warnings():
                # The decision and its reason are part of the result.
                from sfboost.adaptation import AdaptationWarning
                from sfboost.frames import EncodingWarning

                warnings.simplefilter("ignore", AdaptationWarning)
                warnings.simplefilter("ignore", EncodingWarning)  # remarks of the table say it
                warnings.showwarning = lambda message, *where, **more: voice.note(str(message))
                return command(*args, **options)
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise  # to the boundary
        except Exception as error:
            if options.get("debug"):
                say(*(f"  {line}" for line in traceback.format_exc().splitlines()), error=True)
            if isinstance(error, (ValueError, OSError, ImportError)):
                complain(_sentence(error))
                raise typer.Exit(BAD_INPUT) from None
            complain(f"Unexpected {type(error).__name__}: {error}")
            say("This is a fault of sfboost: please report it with what --debug shows.", error=True)
            raise typer.Exit(UNEXPECTED) from None

    return run  # type: ignore[return-value]


def _sentence(error: Exception) -> str:
    """What an error says; Python's own words about a package that is missing name no remedy."""
    if isinstance(error, ModuleNotFoundError) and str(error).startswith("No module named"):
        return f"This needs {error.name}: pip install 'sfboost[all]' brings every extra."
    return str(error)
