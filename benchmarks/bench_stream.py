"""`sfboost predict` on long tables: peak memory and rows a second, and the same through one DataFrame.

Flat memory means that the ratio of the peaks stays near one while the rows grow tenfold.

    python benchmarks/bench_stream.py                        # 200,000 and 2 million rows
    python benchmarks/bench_stream.py --rows 1000000 10000000
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COMMAND = "from sfboost.cli import main; main()"
WHOLE = """
import sys
import pyarrow as pa
import pyarrow.parquet as pq
from pathlib import Path
from sfboost.cli.files import load_project
from sfboost.cli.predictions import predict_batches
project = load_project(Path(sys.argv[1]))
table = pq.read_table(sys.argv[2]).combine_chunks()
import sfboost.cli.predictions as predictions
predictions.BATCH_ROWS = len(table)
pq.write_table(pa.Table.from_batches(predict_batches(project, table.to_batches())), sys.argv[3])
"""


def draw(n_rows, rng, agreement):
    sick = rng.random(n_rows) < 0.5
    sign = np.where(sick, 1.0, -1.0)
    columns = {
        "patient": rng.integers(0, 2**40, n_rows),
        "sick": sick.astype(int),
        "age": rng.normal(55.0 + 6.0 * sign, 10.0),
        "chol": rng.normal(220.0 + 20.0 * sign, 40.0),
        "ward": np.where(rng.random(n_rows) < agreement, sick, ~sick).astype(int).astype(str),
        "heart_rate": rng.normal(150.0 + 20.0 * (2 * agreement - 1.0) * sign, 20.0),
    }
    return pa.table(columns)


def write_long(path, n_rows, rng):
    block = 500_000
    with pq.ParquetWriter(path, draw(1, rng, 0.1).schema) as writer:
        for first in range(0, n_rows, block):
            writer.write_table(draw(min(block, n_rows - first), rng, 0.1), row_group_size=100_000)


def measure(arguments):
    """Seconds and peak memory (MiB) of one process."""
    start = time.perf_counter()
    process = os.posix_spawn(sys.executable, [sys.executable, *map(str, arguments)], os.environ)
    _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit(f"{arguments} failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs=2, default=(200_000, 2_000_000))
    parser.add_argument("--no-whole", action="store_true", help="leave out the way through one table")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = pa.concat_tables(
            draw(3000, rng, a).append_column("hospital", pa.array([h] * 3000))
            for h, a in (("a", 0.9), ("b", 0.8))
        )
        pq.write_table(train, folder / "train.parquet")
        pq.write_table(draw(5000, rng, 0.1), folder / "new.parquet")
        roles = ("--target", "sick", "--domain", "hospital", "--stable", "age,chol", "--id", "patient")
        model, adapted = folder / "model.sfb", folder / "adapted.sfb"
        measure(["-c", COMMAND, "fit", folder / "train.parquet", *roles, "-q", "-o", model])
        measure(["-c", COMMAND, "adapt", model, folder / "new.parquet", "-q", "-o", adapted])
        peaks, out = [], folder / "predictions.parquet"
        for n_rows in options.rows:
            write_long(folder / "long.parquet", n_rows, rng)
            seconds, peak = measure(
                ["-c", COMMAND, "predict", adapted, folder / "long.parquet", "-q", "-o", out]
            )
            assert pq.ParquetFile(out).metadata.num_rows == n_rows
            peaks.append(peak)
            print(f"streamed  {n_rows:>11,} rows  {n_rows / seconds:>10,.0f} rows/s  peak {peak:>7,.0f} MiB")
            if not options.no_whole:
                slow, large = measure(["-c", WHOLE, adapted, folder / "long.parquet", out])
                print(
                    f"one table {n_rows:>11,} rows  {n_rows / slow:>10,.0f} rows/s  peak {large:>7,.0f} MiB"
                )
                print(f"          ratio of times {seconds / slow:.2f}, of peaks {peak / large:.2f}")
        growth = options.rows[1] / options.rows[0]
        print(f"peak memory with {growth:g} times the rows: {peaks[1] / peaks[0]:.2f} times")


if __name__ == "__main__":
    main()
