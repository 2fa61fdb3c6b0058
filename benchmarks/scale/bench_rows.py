"""Adapting to and predicting tables of growing length: memory flat, time against reading and multiplying.

A million rows lie in a Parquet file; each block reads them and shifts them a little, so that no two rows are
alike and a length is a number. For each length a
process of its own samples the rows, adapts to the sample and predicts every row, and says: processor time of
both passes, that of a pass which reads the same batches and multiplies them (see `read_and_multiply`), before
and after, and the memory above that of the imports. One run, ratios. With `--all` the model is also adapted
to all rows at once, and the log losses of both are compared on rows of their own.

    OMP_NUM_THREADS=1 python benchmarks/scale/bench_rows.py --rows 1000000 10000000
    OMP_NUM_THREADS=1 python benchmarks/scale/bench_rows.py --rows 10000000 --all
    OMP_NUM_THREADS=1 python benchmarks/scale/bench_rows.py --rows 1000000 --engine ray
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sklearn.metrics import log_loss

import sfboost
from sfboost.frames.blocks import find_blocks, over_blocks, sample_rows

STABLE, UNSTABLE = 6, 14
NAMES = [f"s{i}" for i in range(STABLE)] + [f"u{i}" for i in range(UNSTABLE)]
BLOCK_ROWS = 1 << 20


def rows(n: int, seed: int, sign: float) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes; in the new domain the unstable features say the opposite."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, STABLE + UNSTABLE))
    y = rng.integers(0, 2, n)
    X[:, :STABLE] += 0.5 * (2 * y[:, None] - 1)
    X[:, STABLE:] += sign * 0.4 * (2 * y[:, None] - 1)
    return X, y


@dataclass(frozen=True)
class ShiftedBlock:
    """The first rows of a file, shifted."""

    file: str
    n_rows: int
    shift: float

    def batches(self):
        left = self.n_rows
        for batch in find_blocks(self.file)[0].batches():
            part = batch.slice(0, left)
            yield pa.record_batch([pc.add(column, self.shift) for column in part.columns], NAMES)
            left -= part.num_rows
            if not left:
                return


def blocks(n_rows: int, file: str) -> list[ShiftedBlock]:
    if not Path(file).exists():
        X, _ = rows(BLOCK_ROWS, 7, -1.0)
        pq.write_table(pa.table(dict(zip(NAMES, X.T.copy(), strict=True))), file)
    firsts = range(0, n_rows, BLOCK_ROWS)
    return [ShiftedBlock(file, min(BLOCK_ROWS, n_rows - first), 1e-9 * first) for first in firsts]


def fitted() -> sfboost.StableFeatureBoosting:
    parts = [rows(3000, seed, sign) for seed, sign in ((0, 1.0), (1, 0.5))]
    X = pd.DataFrame(np.vstack([part[0] for part in parts]), columns=NAMES)
    model = sfboost.StableFeatureBoosting(stable_features=NAMES[:STABLE])
    return model.fit(X, np.concatenate([p[1] for p in parts]), sample_domain=np.repeat(["a", "b"], 3000))


def read_and_multiply(batches):
    """Read the batches as one matrix each; scores of three heads, and products of all columns."""
    weights = np.random.default_rng(0).normal(size=(STABLE + UNSTABLE, 6))
    for batch in batches:
        X = np.column_stack([np.asarray(column) for column in batch.columns])
        scores, products = X @ weights, X.T @ X
        yield pa.record_batch([pa.array(scores[:, 0] + products[0, 0])], ["score"])


def most_memory() -> float:
    """The most that this process ever had, in MiB."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) / 1024


def seconds_of(work, source, engine: str) -> float:
    start = time.process_time() if engine == "here" else time.perf_counter()
    for _ in over_blocks(work, source, engine=engine):
        pass
    return (time.process_time() if engine == "here" else time.perf_counter()) - start


def one(n_rows: int, engine: str, against_all: bool, file: str) -> str:
    source = blocks(n_rows, file)
    before = most_memory()
    model = fitted()
    base = [seconds_of(read_and_multiply, source, engine)]
    clock = time.process_time if engine == "here" else time.perf_counter
    start = clock()
    sample = sample_rows(source, engine=engine)
    sampling, start = clock() - start, clock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = model.adapt(sample.table)
    adapting = clock() - start

    def predict(batches):
        for batch in batches:
            proba = adapted.predict_proba(pa.Table.from_batches([batch]))
            yield pa.record_batch([pa.array(column) for column in proba.T.copy()], ["a", "b"])

    predicting = seconds_of(predict, source, engine)
    peak = most_memory() - before
    base.append(seconds_of(read_and_multiply, source, engine))
    mean = sum(base) / 2
    told = (
        f"{n_rows:>12,} rows, {engine}: reading and multiplying {mean:.2f} s; "
        f"sampling {sampling:.2f} s (ratio {sampling / mean:.2f}), "
        f"adapting to {sample.table.num_rows} rows {adapting:.2f} s, "
        f"predicting {predicting:.2f} s (ratio {predicting / mean:.2f}); {adapted.decision_}; "
        f"memory {peak:.0f} MiB above the imports"
    )
    return told + (compared(model, adapted, n_rows) if against_all else "")


def compared(model, adapted, n_rows: int) -> str:
    """Log losses on fresh rows, of the sample's answer and of one adapted to all rows at once."""
    every, truth = rows(n_rows, 8, -1.0)[0], rows(200_000, 9, -1.0)
    drawn = sample_rows(pa.table(dict(zip(NAMES, every.T, strict=True)))).table
    new = pd.DataFrame(truth[0], columns=NAMES)
    losses = []
    for rows_to_adapt in (drawn.to_pandas(), pd.DataFrame(every, columns=NAMES)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            losses.append(log_loss(truth[1], model.adapt(rows_to_adapt).predict_proba(new)))
    return f"\n    log loss: by the sample {losses[0]:.5f}, by all rows {losses[1]:.5f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--engine", default="here", choices=("here", "ray"))
    parser.add_argument("--all", action="store_true", help="compare with adapting to all rows at once")
    parser.add_argument("--file", help=argparse.SUPPRESS)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(one(options.rows[0], options.engine, options.all, options.file))
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(options, str(Path(folder) / "rows.parquet"))


def measure(options: argparse.Namespace, file: str) -> None:
    blocks(1, file)
    for n_rows in options.rows:
        call = [
            sys.executable,
            __file__,
            "--one",
            "--rows",
            str(n_rows),
            "--engine",
            options.engine,
            "--file",
            file,
        ]
        done = subprocess.run([*call, *(["--all"] if options.all else [])], check=True, capture_output=True)
        print(done.stdout.decode().rstrip(), flush=True)


if __name__ == "__main__":
    main()
