"""The commands, joined: a new one is one file and one line here."""

from __future__ import annotations

from typing import Annotated

import typer

from sfboost import __version__
from sfboost.cli import (
    adapt,
    check,
    compare,
    data,
    demo,
    evaluate,
    explain,
    fit,
    predict,
    reproduce,
    results,
    run,
)
from sfboost.cli.boundary import Boundary
from sfboost.cli.console import EXIT_CODES, say

app = typer.Typer(
    cls=Boundary,
    help="Stable Feature Boosting: adapt a classifier to a new domain without labels.",
    no_args_is_help=True,
    add_completion=False,
    epilog=EXIT_CODES,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    run.run,
    fit.fit,
    adapt.adapt,
    predict.predict,
    evaluate.evaluate,
    check.check,
    explain.explain,
):
    app.command(command.__name__, epilog=EXIT_CODES)(command)
app.command("demo")(demo.demo)
app.command("compare")(compare.compare)
app.add_typer(data.app, name="data")
app.command("reproduce")(reproduce.reproduce)
app.add_typer(results.app, name="results")


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
    """Stable Feature Boosting: adapt a classifier to a new domain without labels."""
