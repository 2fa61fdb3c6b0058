"""What the engine costs: many short runs, their time alone against the time of the whole sweep.

Every run waits 100 ms and does nothing else, in a group of its own: what is above that is bookkeeping. The
promise is less than 20 %. Starting the workers is shown apart. ``--runs 10000`` is the full size.
"""

from __future__ import annotations

import argparse
import tempfile
import time

from sfboost_lab.experiments import Group, Measured, Run, Session, sweep
from sfboost_lab.experiments.engines import make_engine

SECONDS = 0.1


def measure(run: Run, session: Session) -> Measured:
    time.sleep(SECONDS)
    places = [f"test-{k / 10:.1f}" for k in range(11)]
    return Measured({place: {"accuracy": 0.5, "log_loss": 0.7, "ece": 0.1} for place in places})


def groups(n: int, protocol: str) -> list[Group]:
    runs = [Run("ac", "erm", seed, protocol, hyper={"weight": 10.0}) for seed in range(n)]
    return [Group("bench_engine:measure", (run,)) for run in runs]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    engine = make_engine(args.jobs)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        sweep(groups(2 * args.jobs, "warm"), folder, engine)
        warm = time.perf_counter()
        records = sweep(groups(args.runs, "bench"), folder, engine).records
        done = time.perf_counter()
        ideal = sum(record.seconds for record in records.values()) / args.jobs
        again = sweep(groups(args.runs, "bench"), folder, engine).records
        resumed = time.perf_counter() - done
    assert len(records) == len(again) == args.runs
    overhead = 100 * ((done - warm) / ideal - 1)
    print(f"{args.runs} runs of {SECONDS} s on {args.jobs}: {done - warm:.1f} s, {ideal:.1f} s of work,")
    print(f"    bookkeeping {overhead:.1f} %; start {warm - start:.1f} s; all done found in {resumed:.1f} s")


if __name__ == "__main__":
    main()
