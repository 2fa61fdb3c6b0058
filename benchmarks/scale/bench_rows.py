"""Adapting to tables of growing length: memory flat, time linear, each pass against reading and multiplying.

Rows are made on the fly in Arrow batches (nothing is stored), so that a length is a number. For each length a
process of its own adapts to it and says: its peak memory, the seconds of each pass, and the seconds of a pass
of the same engine that makes the same batches, reads them as numbers, and multiplies them by matrices of the
sizes that the pass has (f_S, the head, and the products of its Hessian and scores): the mean of one before
and one after. Both in processor time, of the process and of Ray's workers at the blocks. One run, ratios.

    OMP_NUM_THREADS=1 python benchmarks/scale/bench_rows.py --rows 1000000 10000000 100000000
    OMP_NUM_THREADS=1 python benchmarks/scale/bench_rows.py --rows 1000000 3000000 --ray   # two real workers

With `--out FILE` each length is written down when it is done, and not done again.
"""

from __future__ import annotations

import argparse
import json
import resource
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from sfboost.streaming import Block, Here, RayData, adapt_stream
from sfboost.streaming.engines import AddUp

import sfboost

STABLE, UNSTABLE = 6, 14
NAMES = [f"s{i}" for i in range(STABLE)] + [f"u{i}" for i in range(UNSTABLE)]
BLOCK_ROWS, BATCH_ROWS = 1 << 20, 1 << 16


def rows(n: int, seed: int, sign: float) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes; in the new domain the unstable features say the opposite."""
    rng = np.random.Generator(np.random.SFC64(seed))
    X = rng.standard_normal((n, STABLE + UNSTABLE), dtype=np.float32)
    y = rng.integers(0, 2, n)
    X[:, :STABLE] += 0.5 * (2 * y[:, None] - 1)
    X[:, STABLE:] += sign * 0.4 * (2 * y[:, None] - 1)
    return X, y


# One batch, made once in each process: making random numbers must not be what is measured.
_made: dict[int, pa.RecordBatch] = {}


@dataclass(frozen=True)
class MadeBlock(Block):
    """A block whose rows are made when it is read: shifted copies of one batch, no two the same."""

    first: int = 0
    last: int = 0

    @property
    def stamp(self) -> str:
        return f"{self.first}-{self.last}"

    def batches(self):
        for start in range(self.first, self.last, BATCH_ROWS):
            n = min(BATCH_ROWS, self.last - start)
            if n not in _made:
                X, _ = rows(n, 7, -1.0)
                _made[n] = X.T.astype(np.float64)
            shift = 1e-9 * start
            yield pa.record_batch([pa.array(column + shift) for column in _made[n]], NAMES)


def blocks(n_rows: int) -> list[Block]:
    return [
        MadeBlock(path=f"rows from {first}", first=first, last=min(first + BLOCK_ROWS, n_rows))
        for first in range(0, n_rows, BLOCK_ROWS)
    ]


def model() -> sfboost.StableFeatureBoosting:
    import pandas as pd

    parts = [rows(3000, seed, sign) for seed, sign in ((0, 1.0), (1, 0.5))]
    X = pd.DataFrame(np.vstack([part[0] for part in parts]).astype(float), columns=NAMES)
    fitted = sfboost.StableFeatureBoosting(stable_features=NAMES[:STABLE])
    return fitted.fit(
        X, np.concatenate([part[1] for part in parts]), sample_domain=np.repeat(["a", "b"], 3000)
    )


@dataclass(frozen=True)
class Clocked:
    """Work on a block, with the processor time that it took before its result."""

    work: Callable[[Block], bytes]

    def __call__(self, block: Block) -> bytes:
        start = time.process_time()
        result = self.work(block)
        return struct.pack("d", time.process_time() - start) + result


class Timed:
    """An engine that notes the processor time of each pass, and what it was."""

    def __init__(self, engine):
        self.engine, self.seconds, self.names = engine, [], []

    def run(self, todo, work):
        start, elsewhere = time.process_time(), 0.0
        for block, result in self.engine.run(todo, Clocked(work)):
            if not isinstance(self.engine, Here):
                elsewhere += struct.unpack("d", result[:8])[0]
            yield block, result[8:]
        self.seconds.append(time.process_time() - start + elsewhere)
        function = getattr(work.function, "function", work.function) if isinstance(work, AddUp) else work
        self.names.append(type(function).__name__)


def read_and_multiply(block: Block) -> bytes:
    """Make the batches of a block, put each into one matrix, and multiply as often as a Newton pass does."""
    rng = np.random.default_rng(0)
    score, head = rng.normal(size=(STABLE, 1)), rng.normal(size=(UNSTABLE + 1, 1))
    for batch in block.batches():
        X = np.column_stack([np.asarray(column) for column in batch.columns])
        X[:, :STABLE] @ score
        for first in range(0, len(X), 4096):  # blocks that stay in the cache, as ours
            U = np.column_stack([X[first : first + 4096, STABLE:], np.ones(len(X[first : first + 4096]))])
            U @ head
            U.T @ U  # the Hessian
            wide = np.column_stack([U, U[:, :7]])
            wide.T @ wide  # products of the scores and what else is summed
    return b""


def base_of(engine: Timed, n_rows: int) -> float:
    """Seconds of a pass that only reads and multiplies."""
    other = Timed(engine.engine)
    for _ in other.run(blocks(n_rows), read_and_multiply):
        pass
    return other.seconds[0]


def one(n_rows: int, ray: bool) -> dict:
    fitted = model()
    engine = Timed(RayData(jobs=2) if ray else Here())
    begun = time.perf_counter()
    if ray:
        adapt_stream(fitted, blocks(100_000), engine=RayData(jobs=2))  # Ray and its workers start
    begun = time.perf_counter() - begun
    before = base_of(engine, n_rows)
    start, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        streamed = adapt_stream(fitted, blocks(n_rows), engine=engine)
    total, processor = time.perf_counter() - start, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    base = (before + base_of(engine, n_rows)) / 2
    return {
        "rows": n_rows,
        "ray": ray,
        "begun": begun,
        "total": total,
        "processor": processor,
        "peak": peak,
        "decision": streamed.adapted.decision_,
        "passes": list(zip(engine.names, engine.seconds, strict=True)),
        "base": base,
    }


def measured(n_rows: int, ray: bool) -> dict:
    """What `one` says, in a process of its own."""
    call = [sys.executable, __file__, "--one", str(n_rows), *(["--ray"] if ray else [])]
    out = subprocess.run(call, capture_output=True, text=True, check=False)
    if out.returncode:
        sys.exit(out.stderr[-3000:])
    line = next(line for line in out.stdout.splitlines() if line.startswith("RESULT"))
    return json.loads(line.removeprefix("RESULT "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 4_000_000])
    parser.add_argument("--ray", action="store_true", help="also Ray Data with two workers")
    parser.add_argument(
        "--out", type=Path, help="JSON lines of what was measured, a rerun goes on from there"
    )
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print("RESULT", json.dumps(one(options.one, options.ray)))
        return
    known = []
    if options.out and options.out.exists():
        known = [json.loads(line) for line in options.out.read_text().splitlines()]
    found: dict[bool, list[dict]] = {False: [], True: []}
    for n_rows in options.rows:
        for ray in (False, True) if options.ray else (False,):
            result = next((r for r in known if (r["rows"], r["ray"]) == (n_rows, ray)), None)
            if result is None:
                result = measured(n_rows, ray)
                if options.out:
                    with options.out.open("a") as file:
                        file.write(json.dumps(result) + "\n")
            found[ray].append(result)
            name = "ray, 2 workers" if ray else "here"
            print(
                f"{n_rows:>12,} rows  {name:<15} {result['total']:>8.1f} s ({result['processor']:.1f} s of "
                f"processor time)  {len(result['passes'])} passes  "
                f"peak {result['peak']:,.0f} MiB  {result['decision']}"
            )
            print(f"    reading and multiplying: {result['base']:.1f} s a pass")
            for pass_name, seconds in result["passes"]:
                print(f"    {pass_name:<8} {seconds:>7.1f} s   ratio {seconds / result['base']:.2f}")
    first, last = found[False][0], found[False][-1]
    grown = last["rows"] / first["rows"]
    print(
        f"with {grown:g} times the rows: processor time {last['processor'] / first['processor']:.2f} times, "
        f"peak memory {last['peak'] / first['peak']:.2f} times"
    )
    for here, there in zip(found[False], found[True], strict=False):
        saved = here["total"] - there["total"]
        even = f"even at {there['begun'] / saved * here['rows']:,.0f} rows" if saved > 0.0 else "never even"
        print(
            f"{here['rows']:>12,} rows: ray / here = {there['total'] / here['total']:.2f} once it runs; it "
            f"took {there['begun']:.1f} s to begin: {even}"
        )


if __name__ == "__main__":
    main()
