"""Who applies a function to all blocks: this process, or Ray Data. Neither changes what comes out."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sfboost.streaming.blocks import Block, UnreadableBlockError
from sfboost.streaming.packing import fingerprint, pack, unpack
from sfboost.streaming.rows import BatchFunction, add_up
from sfboost.whole_files import write_whole

#: The names that `make_engine` knows.
ENGINES = ("here", "ray")


class BatchEngine(Protocol):
    """Applies a function to every block."""

    def run(
        self, blocks: Sequence[Block], work: Callable[[Block], bytes]
    ) -> Iterator[tuple[Block, bytes | str]]:
        """Each block, in order, with the bytes of its result, or the sentence why it cannot be read."""


@dataclass(frozen=True)
class Here:
    """One block after the other, in this process."""

    def run(
        self, blocks: Sequence[Block], work: Callable[[Block], bytes]
    ) -> Iterator[tuple[Block, bytes | str]]:
        """See `BatchEngine`."""
        for block in blocks:
            yield block, _attempt(block, work)


@dataclass(frozen=True)
class RayData:
    """Ray Data: joins the cluster that RAY_ADDRESS names, else starts Ray here. Workers must see the files.

    What a worker that dies was doing is done again elsewhere by Ray.

    Parameters
    ----------
    jobs : int, optional
        Cores of a Ray that is started here; by default all.
    """

    jobs: int | None = None

    def run(
        self, blocks: Sequence[Block], work: Callable[[Block], bytes]
    ) -> Iterator[tuple[Block, bytes | str]]:
        """See `BatchEngine`."""
        try:
            import ray
        except ImportError as error:
            raise ImportError(
                "The ray engine needs Ray. Install it with: pip install 'sfboost[ray]'."
            ) from error
        if not ray.is_initialized():
            # Unless a cluster is named we start our own, whatever another one has left on this machine.
            where = os.environ.get("RAY_ADDRESS")
            cores = None if where else self.jobs
            quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
            ray.init(address=where or "local", num_cpus=cores, include_dashboard=False, **quiet)
        yield from _in_order(ray, blocks, work)


def _in_order(
    ray: Any, blocks: Sequence[Block], work: Callable[[Block], bytes]
) -> Iterator[tuple[Block, bytes | str]]:
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    shared = ray.put((list(blocks), work))

    def one(row: dict[str, Any]) -> dict[str, Any]:
        every, function = ray.get(shared)
        try:
            result = _attempt(every[row["id"]], function)
        except OSError as error:  # a full disk there is to be told as one here
            told = [error.errno, error.strerror, error.filename] if error.errno else [str(error)]
            return {"kind": "system", "result": json.dumps(told, default=str).encode()}
        except ValueError as error:
            return {"kind": "refused", "result": str(error).encode()}
        if isinstance(result, str):
            return {"kind": "unreadable", "result": result.encode()}
        return {"kind": "done", "result": result}

    data = ray.data.range(len(blocks), override_num_blocks=len(blocks)).map(one)
    for block, row in zip(blocks, data.iter_rows(), strict=True):
        if row["kind"] == "system":
            raise OSError(*json.loads(row["result"]))
        if row["kind"] == "refused":
            raise ValueError(row["result"].decode())
        yield block, row["result"].decode() if row["kind"] == "unreadable" else row["result"]


def _attempt(block: Block, work: Callable[[Block], bytes]) -> bytes | str:
    try:
        return work(block)
    except UnreadableBlockError as error:
        return str(error)


def make_engine(name: str) -> BatchEngine:
    """The engine of that name."""
    if name not in ENGINES:
        raise ValueError(f"There is no engine {name!r}: use one of {', '.join(ENGINES)}.")
    return RayData() if name == "ray" else Here()


@dataclass(frozen=True, eq=False)
class AddUp:
    """The work on one block: its rows, a batch at a time, summed and packed."""

    function: BatchFunction

    def __call__(self, block: Block) -> bytes:
        """Of one block."""
        return pack(add_up(block.batches(), self.function))


@dataclass(eq=False)
class Passes:
    """Passes of an engine over blocks.

    Attributes
    ----------
    folder : path or None
        Where results of finished blocks are kept, so that a run that was stopped goes on from there.
    skip_unreadable : bool
        Whether a block that cannot be read in the first pass is left out of all.
    skipped : list of str
        Why, for each that was.
    """

    engine: BatchEngine
    blocks: list[Block]
    folder: Path | None = None
    skip_unreadable: bool = False
    skipped: list[str] = field(default_factory=list)
    done: int = 0

    def __call__(self, function: BatchFunction, label: str = "") -> Any:
        """The sum of a function over all blocks; `label` tells equal passes of two runs."""
        places = [self._place(block, label) for block in self.blocks]
        kept = [place is not None and place.exists() for place in places]
        todo = [block for block, is_kept in zip(self.blocks, kept, strict=True) if not is_kept]
        fresh = self.engine.run(todo, AddUp(function)) if todo else iter(())
        total, lost = None, []
        for block, place, is_kept in zip(self.blocks, places, kept, strict=True):
            if is_kept and place is not None:
                result: bytes | str = place.read_bytes()
            else:
                _, result = next(fresh)
            if isinstance(result, str):
                self._refuse(result)
                lost.append(block)
                continue
            if not is_kept and place is not None:
                place.parent.mkdir(parents=True, exist_ok=True)
                write_whole(place, result)
            part = unpack(result)
            if part is not None:
                total = part if total is None else total + part
        next(fresh, None)  # the engine may clean up behind itself
        self.blocks = [block for block in self.blocks if block not in lost]
        self.done += 1
        if total is None:
            raise ValueError("There are no rows in the table: at least one row is needed.")
        return total

    def _refuse(self, sentence: str) -> None:
        if not self.skip_unreadable:
            raise ValueError(f"{sentence} Mend or remove it, or say --skip-unreadable to go on without it.")
        if self.done:
            raise ValueError(f"{sentence} It could be read before: start again.")
        self.skipped.append(sentence)

    def _place(self, block: Block, label: str) -> Path | None:
        if self.folder is None or not label:
            return None
        try:
            return self.folder / f"{fingerprint(block.stamp, label)}.npz"
        except OSError:  # it is gone: whoever reads it will say so
            return None
