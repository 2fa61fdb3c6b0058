"""The `sfboost` command: one file per command, joined in `sfboost.cli.app`.

Layer 8: words in, words out; the work is done in the rooms below.
"""

import sys


def main() -> None:
    """Run the command, or say which extra it needs."""
    try:
        from sfboost.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("sfboost"):
            raise
        sys.exit(f"The sfboost command needs {error.name}: pip install 'sfboost[app]'")
    try:
        app()
    except SystemExit as end:
        # Who reads the help through `head` has had enough, and that is no failure.
        if isinstance(end.__context__, BrokenPipeError):
            sys.exit(0)
        raise
