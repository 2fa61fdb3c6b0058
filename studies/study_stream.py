"""False alarms and delays of `StreamingAdapter`: years of batches without a change, and with one.

OMP_NUM_THREADS=1 python studies/study_stream.py            # 30 years of daily batches of 200 rows
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--years", type=int, default=30)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--half-life", type=float, default=10_000)
    parser.add_argument("--changes", type=int, default=40)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    alarms = kept = 0
    for year in range(options.years):
        rng = np.random.default_rng(year)
        stream = StreamingAdapter(begin(rng, 2000), half_life=options.half_life)
        kinds = [stream.update(draw(options.rows, 1.0, rng)[0]).kind for _ in range(365)]
        alarms += kinds.count("alarm")
        kept += kinds.count("switched")
    print(
        f"{options.years} years of daily batches of {options.rows} rows, nothing changes, one false alarm "
        f"a year accepted: {alarms / options.years:.2f} a year, {kept / options.years:.2f} needless switches"
    )
    for slope in (-1.0, 0.0, 0.5):
        delays, switches = [], []
        for seed in range(options.changes):
            rng = np.random.default_rng(1000 + seed)
            stream = StreamingAdapter(begin(rng, 2000), half_life=options.half_life)
            for _ in range(20):
                stream.update(draw(options.rows, 1.0, rng)[0])
            kinds = [stream.update(draw(options.rows, slope, rng)[0]).kind for _ in range(60)]
            delays.append(kinds.index("alarm") + 1 if "alarm" in kinds else np.nan)
            switches.append(kinds.index("switched") + 1 if "switched" in kinds else np.nan)
        print(
            f"meaning goes from 1 to {slope:g}: alarm after {np.nanmedian(delays):g} batches (median; in "
            f"{100 * np.isfinite(delays).mean():.0f} % within 60), new head after {np.nanmedian(switches):g} "
            f"({100 * np.isfinite(switches).mean():.0f} %)"
        )


if __name__ == "__main__":
    main()
