"""Readers that leave early, as `head` does: no error, and no reason to stop working."""

from __future__ import annotations

import os
from typing import Any

import rich.console


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
