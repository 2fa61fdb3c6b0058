"""`sfboost evaluate` on a long table: twelve domains, 412 000 rows, twelve columns, one of them of words.

The whole command in a process of its own: its processor time and its peak memory. Another version of the source
(`--against FOLDER`) does the same table in the same run, so that the ratio means something. The table stays in
`build/`.

    OMP_NUM_THREADS=1 python benchmarks/scale/bench_evaluate.py
    git worktree add build/before d65f593
    OMP_NUM_THREADS=1 python benchmarks/scale/bench_evaluate.py --against build/before/src
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

STABLE, UNSTABLE = 5, 6
WORDS = np.array(["north", "south", "east", "west"])


def make_table(n_rows: int, n_domains: int, path: Path) -> None:
    """Stable columns mean the same everywhere; what the unstable ones mean differs by domain."""
    rng = np.random.default_rng(0)
    domain = rng.integers(0, n_domains, n_rows)
    stable = rng.normal(size=(n_rows, STABLE))
    risk = stable @ np.linspace(1.0, 0.2, STABLE) - 0.5 + 0.2 * rng.normal(size=n_domains)[domain]
    y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-risk))).astype(int)
    meaning = np.linspace(0.8, 0.1, UNSTABLE) + 0.25 * rng.normal(size=(n_domains, UNSTABLE))
    unstable = (2 * y - 1)[:, None] * meaning[domain] + rng.normal(size=(n_rows, UNSTABLE))
    columns = {f"s{i}": stable[:, i].round(4) for i in range(STABLE)}
    columns |= {f"u{i}": unstable[:, i].round(4) for i in range(UNSTABLE)}
    columns |= {"u_word": WORDS[(rng.integers(0, 3, n_rows) + y) % len(WORDS)]}
    columns |= {"site": np.array([f"site {i}" for i in range(n_domains)])[domain], "sick": y}
    path.parent.mkdir(parents=True, exist_ok=True)
    pacsv.write_csv(pa.table(columns), path)


def evaluate(table: Path, source: str | None) -> dict:
    """The command in a process of its own, with its processor time and peak memory."""
    command = [sys.executable, "-c", "from sfboost.cli import main; main()", "evaluate", str(table)]
    command += [
        "--target",
        "sick",
        "--domain",
        "site",
        "--stable",
        ",".join(f"s{i}" for i in range(STABLE)),
        "--json",
    ]
    environment = os.environ | ({"PYTHONPATH": source} if source else {})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "peak": after.ru_maxrss / 1024, "told": json.loads(done.stdout)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=412_000)
    parser.add_argument("--domains", type=int, default=12)
    parser.add_argument("--against", help="source folder of another version")
    parser.add_argument("--folder", type=Path, default=Path("build"))
    options = parser.parse_args()
    table = options.folder / f"evaluate-{options.rows}-{options.domains}.csv"
    if not table.exists():
        make_table(options.rows, options.domains, table)
    found = {}
    for name, source in {"this": None, "other": options.against}.items():
        if name == "other" and source is None:
            continue
        found[name] = evaluate(table, source)
        told = found[name]["told"]
        print(
            f"{name:<6} {found[name]['seconds']:>7.1f} s of processor time, peak {found[name]['peak']:,.0f} MiB, "
            f"gain {100 * told['gain']:+.2f} points",
            flush=True,
        )
    if "other" in found:
        print(f"this / other = {found['this']['seconds'] / found['other']['seconds']:.2f}")


if __name__ == "__main__":
    main()
