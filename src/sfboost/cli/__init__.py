"""The `sfboost` command: one file per command, joined in `sfboost.cli.app`.

Layer 8: words in, words out; the work is done in the rooms below.
"""

import os
import sys

from sfboost.cli.interruption import INTERRUPTED, Interrupted, catch_signals, was_interrupted
from sfboost.registry import import_named


def main(app: str = "sfboost.cli.app:app") -> None:
    """Run the command, or say which extra it needs."""
    try:
        catch_signals()
        _open_closed_streams()
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a letter that the terminal does not have is no error
                stream.reconfigure(errors="backslashreplace")
        import_named(app)()
    except KeyboardInterrupt as stop:
        _leave(stop.code if isinstance(stop, Interrupted) else INTERRUPTED)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("sfboost"):
            raise
        sys.exit(f"The sfboost command needs {error.name}: pip install 'sfboost[app]'")
    except Exception:
        if not was_interrupted():
            raise
        _leave(INTERRUPTED)


def _open_closed_streams() -> None:
    """Let a stream that was closed (`>&-`) lead nowhere, or the next file that is opened takes its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115  # it stays open, as its like


def _leave(code: int) -> None:
    """End an interruption that came before any command began; later ones are told in `boundary`."""
    sys.stderr.write("error: Interrupted; no file was changed.\n")
    sys.exit(code)
