"""`sfboost evaluate` on a long table: twelve domains, 412 000 rows, twelve columns, one of them of words.

The whole command in a process of its own: its processor time and its peak memory. Then the same without play,
where the answer is "safe"; and with `--against FOLDER` what another version of the source takes for the same
table, all in one run, so that ratios mean something. The table stays in `build/`.

    OMP_NUM_THREADS=1 python benchmarks/scale/bench_evaluate.py
    git worktree add build/before d65f593
    OMP_NUM_THREADS=1 python benchmarks/scale/bench_evaluate.py --against build/before/src
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
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


def evaluate(table: Path, source: str | None = None, play: bool = True) -> dict:
    """The command in a process of its own: what it says, processor time and peak memory."""
    command = [sys.executable, "-c", "from sfboost.cli import main; main()", "evaluate", str(table)]
    command += ["--target", "sick", "--domain", "site", "--json"]
    command += ["--stable", ",".join(f"s{i}" for i in range(STABLE))]
    environment = os.environ | ({"PYTHONPATH": source} if source else {})
    with tempfile.TemporaryDirectory() as folder:
        if not play:
            config = Path(folder, "settings.toml")
            config.write_text("[model]\nplay = false\n")
            command += ["--config", str(config)]
        with Path(folder, "told").open("w+") as told, Path(folder, "errors").open("w+") as errors:
            process = subprocess.Popen(command, stdout=told, stderr=errors, env=environment)
            _, status, used = os.wait4(process.pid, 0)
            told.seek(0)
            errors.seek(0)
            if status:
                sys.exit(errors.read()[-3000:])
            said = json.load(told)
    return {"seconds": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss / 1024, "told": said}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=412_000)
    parser.add_argument("--domains", type=int, default=12)
    parser.add_argument("--against", action="append", default=[], help="source folder of another version")
    parser.add_argument("--folder", type=Path, default=Path("build"))
    options = parser.parse_args()
    table = options.folder / f"evaluate-{options.rows}-{options.domains}.csv"
    if not table.exists():
        make_table(options.rows, options.domains, table)
    runs: dict[str, tuple] = {"this": (table,), "this, without play": (table, None, False)}
    runs |= {source: (table, source) for source in options.against}
    seconds = {}
    for name, call in runs.items():
        found = evaluate(*call)
        seconds[name] = found["seconds"]
        decisions = [row["decision"] for row in found["told"]["domains"] if row["method"] == "answer"]
        print(
            f"{name:<20} {found['seconds']:>7.1f} s of processor time, peak {found['peak']:,.0f} MiB, gain "
            f"{100 * found['told']['gain']:+.3f} points; {', '.join(decisions)}",
            flush=True,
        )
    for other in options.against:
        ratios = [f"{name} / other = {seconds[name] / seconds[other]:.2f}" for name in list(runs)[:2]]
        print(f"other is {other}: {'; '.join(ratios)}")


if __name__ == "__main__":
    main()
