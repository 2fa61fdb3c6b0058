"""False alarms and delays of `StreamingAdapter`: years of batches without a change, and with one.

OMP_NUM_THREADS=1 python studies/study_stream.py            # 30 years of daily batches of 200 rows
OMP_NUM_THREADS=1 python studies/study_stream.py --first 300   # first batches alone, by tails and learner
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from sfboost import StableFeatureBoosting, StreamingAdapter


def draw(n_rows, slope, rng):
    y = rng.integers(0, 2, n_rows)
    sign = (2 * y - 1)[:, None]
    stable, unstable = (rng.normal(size=(n_rows, 2)) + size * sign for size in (0.9, slope))
    return np.hstack([stable, unstable]), y


def begin(rng, rows):
    X, y = draw(2000, 0.5, rng)
    model = StableFeatureBoosting([0, 1]).fit(X, y, sample_domain=np.repeat(["a", "b"], 1000))
    return model.adapt(draw(rows, 1.0, rng)[0], leak=0.0)


def quiet_year(options, seed):
    """A year in which nothing changes: its alarms, and the switches that they led to."""
    rng = np.random.default_rng(seed)
    stream = StreamingAdapter(begin(rng, 2000), half_life=options.half_life)
    kinds = [stream.update(draw(options.rows, 1.0, rng)[0]).kind for _ in range(365)]
    return {"alarms": kinds.count("alarm"), "switches": kinds.count("switched")}


def first_batch(options, seed, kind, slope):
    """Whether the first batch after 2000 rows is an alarm."""
    rng = np.random.default_rng([2000 + seed, len(kind)])

    def rows(n_rows, slope):
        sign = np.where(rng.random(n_rows) < (0.05 if kind == "5 % positives" else 0.5), 1.0, -1.0)[:, None]
        size = (n_rows, 2)
        noise = rng.standard_t(3, size=size) if kind == "heavy tails" else rng.normal(size=size)
        return np.hstack([rng.normal(size=size) + 0.9 * sign, noise + slope * sign]), sign[:, 0]

    X, y = rows(2000, 0.5)
    learner = HistGradientBoostingClassifier(max_iter=50) if kind == "boosted f_S" else None
    model = StableFeatureBoosting([0, 1], stable=learner, play=False)
    model.fit(X, y, sample_domain=np.repeat(["a", "b"], 1000))
    stream = StreamingAdapter(model.adapt(rows(2000, 1.0)[0], answer="paper"))
    while True:  # rows wait for some of a rare class
        event = stream.update(rows(options.rows, slope)[0])
        if not np.isnan(event.p_value):
            return event.kind == "alarm"


def one_change(options, seed, slope):
    """Batches from a change to the alarm and to the new head; None if they do not come within 60."""
    rng = np.random.default_rng(1000 + seed)
    stream = StreamingAdapter(begin(rng, 2000), half_life=options.half_life)
    for _ in range(20):
        stream.update(draw(options.rows, 1.0, rng)[0])
    kinds = [stream.update(draw(options.rows, slope, rng)[0]).kind for _ in range(60)]
    return {kind: kinds.index(kind) + 1 if kind in kinds else None for kind in ("alarm", "switched")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--years", type=int, default=30)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--half-life", type=float, default=10_000)
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--first", type=int, help="so many first batches of each kind, and nothing else")
    parser.add_argument("--out", type=Path, help="JSON lines, one a stream; a rerun goes on from there")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = {}
    if options.out and options.out.exists():
        known = dict(map(json.loads, options.out.read_text().splitlines()))

    def done(name, work):
        name = f"{name}, {options.rows} rows, half-life {options.half_life:g}"
        if name not in known:
            known[name] = work()
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps([name, known[name]]) + "\n")
        return known[name]

    for kind in ("normal", "heavy tails", "5 % positives", "boosted f_S") if options.first else ():
        alarms = {
            slope: [
                done(
                    f"first {i}, {kind}, {slope:g}",
                    lambda i=i, k=kind, s=slope: first_batch(options, i, k, s),
                )
                for i in range(options.first if slope == 1.0 else options.first // 10)
            ]
            for slope in (1.0, -1.0)
        }
        print(
            f"first batch, {kind}: {sum(alarms[1.0])} false alarms in {options.first}; of a mirrored meaning "
            f"{100 * np.mean(alarms[-1.0]):.0f} %",
            flush=True,
        )
    if options.first:
        return
    years = [done(f"year {i}", lambda i=i: quiet_year(options, i)) for i in range(options.years)]
    alarms, switches = (sum(year[kind] for year in years) / len(years) for kind in ("alarms", "switches"))
    print(
        f"{options.years} years of daily batches of {options.rows} rows, nothing changes, one false alarm "
        f"a year accepted: {alarms:.2f} a year, {switches:.2f} needless switches",
        flush=True,
    )
    for slope in (-1.0, 0.0, 0.5):
        found = [
            done(f"change {i} to {slope:g}", lambda i=i, slope=slope: one_change(options, i, slope))
            for i in range(options.changes)
        ]
        alarm, switched = (
            np.array([one[kind] for one in found], dtype=float) for kind in ("alarm", "switched")
        )
        print(
            f"meaning goes from 1 to {slope:g}: alarm after {np.nanmedian(alarm):g} batches (median; in "
            f"{100 * np.isfinite(alarm).mean():.0f} % within 60), new head after {np.nanmedian(switched):g} "
            f"({100 * np.isfinite(switched).mean():.0f} %)",
            flush=True,
        )


if __name__ == "__main__":
    main()
