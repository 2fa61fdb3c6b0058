"""Where the command ends: wrong usage, a reader who has had enough, an interruption."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from sfboost.cli.console import UNEXPECTED, complain, say
from sfboost.cli.interruption import INTERRUPTED, Interrupted, let_go
from sfboost.cli.pipes import silence
from sfboost.notices import first_names
from sfboost.whole_files import Placement, watch_placements


class Boundary(TyperGroup):
    """The whole command. All that it says on its way out goes through `console`, as everything does."""

    program = "sfboost"

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run one command and end the process."""
        with watch_placements() as placed:
            try:
                code = self._run(sys.argv[1:] if args is None else list(args), prog_name or self.program)
                let_go()
            except KeyboardInterrupt as stop:
                complain(farewell(placed, getattr(stop, "kept", None)))
                code = stop.code if isinstance(stop, Interrupted) else INTERRUPTED
        sys.exit(code)

    def _run(self, args: list[str], name: str) -> int:
        try:
            # The report says by which command it was made.
            with self.make_context(name, args, obj=shlex.join([self.program, *args])) as context:
                self.invoke(context)
                sys.stdout.flush()
        except typer.Exit as end:
            return int(end.exit_code)
        except typer.Abort:
            return UNEXPECTED
        except BrokenPipeError:
            # The reader has had enough, as `head` has. Python must not complain when it flushes at exit.
            silence(sys.stdout)
        except SystemExit as end:
            # Help is printed by rich, which ends the process with 1 when its reader has left.
            if not isinstance(end.__context__, BrokenPipeError):
                raise
            silence(sys.stdout)
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            return _wrong_usage(error)
        return 0


def farewell(placed: Sequence[Placement], kept: Path | None = None) -> str:
    """What an interruption leaves behind, read off the disk; `kept` is a folder of finished runs.

    Examples
    --------
    >>> farewell([])
    'Interrupted; no file was changed.'
    >>> farewell([], Path("results"))
    'Interrupted; finished runs are in results: the same command goes on from there.'
    """
    there = [Path(placement.target) for placement in placed if placement.part and placement.happened()]
    whole = dict.fromkeys(target for target in there if target.parent.suffix != ".parts")
    blocks = dict.fromkeys(target.parent for target in there if target.parent.suffix == ".parts")
    begun = dict.fromkeys(placement.target for placement in placed if placement.part is None)
    told = [f"written before that: {first_names(whole)}"] if whole else []
    told += [f"finished runs are in {kept}: the same command goes on from there"] if kept else []
    told = told or ["no file was changed"]
    told += (
        [f"finished blocks are in {first_names(blocks)}: the same command goes on from there"]
        if blocks
        else []
    )
    told += [f"what went to {first_names(begun)} may be cut short"] if begun else []
    return f"Interrupted; {'; '.join(told)}."


def _wrong_usage(error: Any) -> int:
    sentence, context = error.format_message(), getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # what it says is the help, or nothing if it is printed
        say(*sentence.splitlines(), error=True)
    elif sentence:
        if context is not None:
            say(
                *context.get_usage().splitlines(),
                f"Try '{context.command_path} --help' for help.",
                error=True,
            )
        complain(sentence)
    return int(error.exit_code)
