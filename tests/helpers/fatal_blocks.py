"""Blocks whose reading or writing goes wrong for real: a killed process, a full disk."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from sfboost.streaming import Block


@dataclass(frozen=True)
class FatalBlock(Block):
    """Kills whoever reads it for the `fatal`-th time; the readings are counted in a file."""

    counter: str = ""
    fatal: int = 1

    def batches(self):
        counter = Path(self.counter)
        readings = len(counter.read_bytes()) + 1 if counter.exists() else 1
        with counter.open("ab") as file:
            file.write(b".")
        if readings == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().batches()


def write_to_a_full_disk(block):
    """Work on a block whose result finds no room."""
    return str(Path("/dev/full").write_bytes(block.path.encode())).encode()


def refuse(block):
    """Work on a block that lacks what it needs."""
    raise ValueError(f"{block.path} has no column 'age'.")
