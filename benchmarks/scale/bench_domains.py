"""An answer for each of several domains against one for all of them: log loss, accuracy, processor time.

    OMP_NUM_THREADS=1 python benchmarks/scale/bench_domains.py              # 300 domains of 30 to 300 rows
    OMP_NUM_THREADS=1 python benchmarks/scale/bench_domains.py --classes 5
    OMP_NUM_THREADS=1 python benchmarks/scale/bench_domains.py --rare 0.05  # share of the last class
    OMP_NUM_THREADS=1 python benchmarks/scale/bench_domains.py --eicu       # 174 hospitals, real labels

f_S is learned from eight labelled domains. What the unstable features mean varies a little from domain to
domain, and is mirrored in a tenth of them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import sfboost

MEAN = np.array([0.6, 0.4, -0.3, 0.2, 0.0])


def score(log_proba: Any, y: Any) -> str:
    loss = -log_proba[np.arange(len(y)), y].mean()
    return f"log loss {loss:.4f}  accuracy {100 * (log_proba.argmax(axis=1) == y).mean():.2f} %"


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return run(), time.process_time() - start


def simulation(n_domains: int, n_classes: int, rare: float | None) -> None:
    """Every domain its own answer."""
    rng = np.random.default_rng(0)
    at = np.array([[-1.0] * 7, [1.0] * 7])
    if n_classes > 2:
        at = 1.5 * rng.normal(size=(n_classes, 7))
        at -= at.mean(axis=0)
    rest = np.full(n_classes - 1, (1.0 - (rare or 1.0 / n_classes)) / (n_classes - 1))

    def draw(sizes: Any, mirrored: Any) -> tuple[Any, Any, Any]:
        domain = np.repeat(np.arange(len(sizes)), sizes)
        y = np.searchsorted(np.cumsum(rest), rng.random(len(domain)), side="right")
        beta = (MEAN + rng.normal(0.0, 0.1, (len(sizes), len(MEAN)))) * np.where(mirrored, -1.0, 1.0)[:, None]
        centre = np.column_stack([np.full((len(y), 2), 0.8), beta[domain]])
        return at[y] * centre + rng.normal(size=centre.shape), y, domain

    X, y, domain = draw([500] * 8, [False] * 8)
    model = sfboost.StableFeatureBoosting([0, 1]).fit(X, y, sample_domain=domain)
    mirrored = rng.random(n_domains) < 0.1
    X, y, domain = draw(rng.integers(30, 301, n_domains), mirrored)
    many, seconds = timed(lambda: model.adapt(X, sample_domain=domain))
    said, to_say = timed(lambda: many.predict_log_proba(X, domain))
    answers = {
        "stable alone": model.predict_log_proba(X),
        "all as trained": model.answer_rows(X).view.log_pooled,
        "all as one domain": model.adapt(X).predict_log_proba(X),
        "each by itself": said,
    }
    print(f"{n_domains:,} domains, {len(X):,} rows, {mirrored.sum()} mirrored")
    for kind, there in (("mirrored", mirrored), ("as ever", ~mirrored), ("all", mirrored | True)):
        for name, log_proba in answers.items():
            print(f"  {kind}: {name:<18} {score(log_proba[there[domain]], y[there[domain]])}")
    found = {row.name for row in many.overview() if row.verdict == "changed"}
    false = len([name for name in found if not mirrored[name]])
    print(
        f"  called changed: {len(found)}, of which {100 * false / max(len(found), 1):.1f} % are not (at most "
        f"5 % wanted); {100 * (len(found) - false) / mirrored.sum():.0f} % of the mirrored found"
    )
    print(
        f"  {1000 * seconds / n_domains:.1f} ms a domain to adapt, {1000 * to_say / n_domains:.1f} to predict"
    )


def eicu(unstable: list[str]) -> None:
    """Half of the hospitals train; the others are new, all at once. Labels score and nothing else."""
    from sfboost_lab.datasets.eicu import SPLIT, _stays

    table = _stays(None).rename(columns={"hospitalid": "hospital"}).dropna(subset=["hospital"])
    names = np.array(sorted(table["hospital"].unique()))
    known = np.random.default_rng(0).permutation(names)[: len(names) // 2]
    train, new = table[table["hospital"].isin(known)], table[~table["hospital"].isin(known)]
    features = [*SPLIT.stable, *(unstable or SPLIT.unstable)]
    model = sfboost.StableFeatureBoosting(stable_features=list(SPLIT.stable))
    model.fit(train[features], train["died"], sample_domain=train["hospital"].astype(str))
    where, y = new["hospital"].astype(str).to_numpy(), np.searchsorted(model.classes_, new["died"])
    X = new[features]
    print(
        f"eICU demo: {len(names)} hospitals, half of them train; {len(new)} stays in the other "
        f"{new['hospital'].nunique()}; unstable: {', '.join(unstable or SPLIT.unstable)}"
    )
    print(f"  stable alone        {score(model.predict_log_proba(X), y)}")
    for answer in ("paper", "checked", "safe", "best"):
        one = model.adapt(X, answer=answer)
        print(f"  as one, {answer:<11} {score(one.predict_log_proba(X), y)}  {one.decision_}")
        many, seconds = timed(lambda asked=answer: model.adapt(X, sample_domain=where, answer=asked))
        decisions = ", ".join(sorted({adapted.decision_ for adapted in many.values()}))
        found = score(many.predict_log_proba(X, where), y)
        print(f"  each, {answer:<13} {found}  {decisions}, {seconds:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--domains", type=int, default=300)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--rare", type=float, help="share of the last class, if not an even one")
    parser.add_argument("--eicu", action="store_true")
    parser.add_argument("--unstable", nargs="+", default=[], help="of eICU; by default those of the split")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.eicu:
        eicu(options.unstable)
    else:
        simulation(options.domains, options.classes, options.rare)


if __name__ == "__main__":
    main()
