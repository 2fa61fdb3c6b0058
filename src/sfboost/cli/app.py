"""The commands, joined: a new one is one file and one line here.

A command is imported when it is run: `--help` and `--version` do not bring scikit-learn.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from sfboost import __version__
from sfboost.cli.console import EXIT_CODES, INTERRUPTED, UNEXPECTED, complain, say, silence
from sfboost.registry import import_named


class Boundary(TyperGroup):
    """The whole command. All that it says on its way out goes through `console`, as everything does."""

    program = "sfboost"

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run one command and end the process."""
        try:
            code = self._run(sys.argv[1:] if args is None else list(args), prog_name or self.program)
        except KeyboardInterrupt as stop:
            kept = getattr(stop, "kept", None)  # a folder of finished runs
            resumed = f"finished runs are in {kept}: the same command goes on from there"
            complain(f"Interrupted; {resumed if kept else 'every file is whole: the old one, or the new'}.")
            code = INTERRUPTED
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


def _wrong_usage(error: Any) -> int:
    sentence, context = error.format_message(), getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # what it says is the help, or nothing if it is printed
        say(*sentence.splitlines(), error=True)
    elif sentence:
        if context is not None:
            hint = f"Try '{context.command_path} --help' for help."
            say(*context.get_usage().splitlines(), hint, error=True)
        complain(sentence)
    return int(error.exit_code)


#: Name → "module:function" (or a group of commands), and what the list of commands says of it.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("sfboost.cli.demo:demo", "Adapt to digits whose colour shifts: a table and a figure."),
    "run": ("sfboost.cli.run:run", "Fit to TRAIN, adapt to NEW, predict NEW, and write the report."),
    "fit": ("sfboost.cli.fit:fit", "Fit a model to labelled source domains and save it."),
    "adapt": ("sfboost.cli.adapt:adapt", "Adapt a model to the unlabelled rows of one target domain."),
    "predict": ("sfboost.cli.predict:predict", "Predict rows, a batch at a time."),
    "evaluate": (
        "sfboost.cli.evaluate:evaluate",
        "Leave each source domain out in turn: what would be gained?",
    ),
    "check": ("sfboost.cli.check:check", "Look at the assumptions, one verdict each."),
    "propose": ("sfboost.cli.propose:propose", "Rank the columns by how stable they are."),
    "explain": ("sfboost.cli.explain:explain", "Say why one row is predicted as it is."),
    "info": ("sfboost.cli.info:info", "Say what is in a model file."),
    "features": (
        "sfboost.cli.features:features",
        "Turn a folder of pictures into a table of a network's features.",
    ),
}


class Commands(Boundary):
    """The list is read from `listed`; a command itself is imported when it is asked for."""

    listed = COMMANDS
    aside: tuple[str, ...] = ("features",)

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, in the order in which they are shown."""
        return list(self.listed)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Commands by their names and summaries; those that are `aside` below the others."""
        names = [name for name in self.listed if name not in self.aside]
        for title, some in (("Commands", names), ("To prepare tables", self.aside)):
            if some:
                with formatter.section(title):
                    formatter.write_dl([(name, self.listed[name][1]) for name in some])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is to run, in full."""
        if args and args[0] in self.listed:
            return args[0], load_command(args[0], self.listed), args[1:]
        near = get_close_matches(args[0], self.listed, n=1) if args else []
        if near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)


def load_command(name: str, commands: Mapping[str, tuple[str, str]] = COMMANDS) -> Any:
    """Import a command.

    Examples
    --------
    >>> load_command("fit").name
    'fit'
    """
    found = import_named(commands[name][0])
    if not isinstance(found, typer.Typer):
        made = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        made.command(name, epilog=EXIT_CODES)(found)
        found = made
    command = get_command(found)
    command.name = name
    return command


app = typer.Typer(
    cls=Commands,
    help="Stable Feature Boosting: adapt a classifier to a target domain without labels.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # a narrow column of rich cuts names of options
    epilog=f"{EXIT_CODES} Methods compared on a table of yours: sfboost-lab compare, of a checkout.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"sfboost {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Stable Feature Boosting: adapt a classifier to a target domain without labels."""
