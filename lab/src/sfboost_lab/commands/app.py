"""The commands, joined: a new one is one file and one line here."""

from __future__ import annotations

import typer

from sfboost.cli.app import Commands


class LabCommands(Commands):
    """The laboratory's list."""

    program = "sfboost-lab"
    aside = ()
    listed = {  # noqa: RUF012  # a list, as that of `sfboost`
        "reproduce": ("sfboost_lab.commands.reproduce:reproduce", "Run the paper's experiments."),
        "results": ("sfboost_lab.commands.results:app", "Results: show, export, pack, check."),
        "compare": (
            "sfboost_lab.commands.compare:compare",
            "Compare methods on a table of yours, each domain left out.",
        ),
        "data": ("sfboost_lab.commands.data:app", "Data sets: list, show, fetch, path, export."),
        "table-one": (
            "sfboost_lab.commands.table_one:show",
            "The paper's Table 1: which parts of X a system uses.",
        ),
    }


app = typer.Typer(
    cls=LabCommands,
    help="The laboratory of sfboost: the paper's tables, its rivals, its data.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def root() -> None:
    """The laboratory of sfboost: the paper's tables, its rivals, its data."""
