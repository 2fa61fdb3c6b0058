"""The `sfboost` command: one file per command, joined in `sfboost.cli.app`.

Layer 8: words in, words out; the work is done in the rooms below.
"""

import os
import signal
import sys
from typing import Any

from sfboost.registry import import_named


def main(app: str = "sfboost.cli.app:app") -> None:
    """Run the command, or say which extra it needs."""
    for name in ("stdin", "stdout", "stderr"):
        # A stream that was closed (`>&-`) leads nowhere, or the next file that is opened takes its number.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a letter that the terminal does not have is no error
            stream.reconfigure(errors="backslashreplace")
    for name in ("SIGTERM", "SIGHUP"):  # a batch system or a closed terminal ends it as Ctrl-C does
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)
    try:
        import_named(app)()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("sfboost"):
            raise
        sys.exit(f"The sfboost command needs {error.name}: pip install 'sfboost[app]'")
    except KeyboardInterrupt:  # before the command began
        sys.exit(128 + 2)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt
