"""Many domains in one call against a loop over `adapt` and one head for all: log loss, accuracy, CPU time.

    OMP_NUM_THREADS=1 python benchmarks/scale/bench_domains.py              # 10 000 domains of 30 to 300 rows
    OMP_NUM_THREADS=1 python benchmarks/scale/bench_domains.py --best       # the best answer for each of them
    OMP_NUM_THREADS=1 python benchmarks/scale/bench_domains.py --best --classes 5
    OMP_NUM_THREADS=1 python benchmarks/scale/bench_domains.py --best --rare 0.05  # share of the last class
    OMP_NUM_THREADS=1 python benchmarks/scale/bench_domains.py --eicu       # 174 hospitals, real labels

The simulation knows the truth: f_S is exact, and in domain d the unstable features are ±β_d plus noise, with
β_d normal about a common mean. The loop is timed and scored on 100 of the domains (300 with --best), and its
time scaled up. With --best f_S is learned from eight labelled domains; β_d varies little, and is mirrored
in a tenth of them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import sfboost
from sfboost.pooling import fit_pooled_heads

MEAN, SPREAD = np.array([0.6, 0.4, -0.3, 0.2, 0.0]), 0.4


def simulate(n_domains: int, seed: int = 0) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    domain = np.repeat(np.arange(n_domains), rng.integers(30, 301, n_domains))
    f = 1.0 / (1.0 + np.exp(-rng.normal(0.0, 1.5, len(domain)) - rng.normal(0.0, 0.5, n_domains)[domain]))
    y = (rng.random(len(domain)) < f).astype(int)
    beta = MEAN + rng.normal(0.0, SPREAD, (n_domains, len(MEAN)))
    X = (2 * y - 1)[:, None] * beta[domain] + rng.normal(size=(len(domain), len(MEAN)))
    return np.column_stack([1.0 - f, f]), X, domain, y, beta


def score(log_proba: Any, y: Any) -> str:
    loss = -log_proba[np.arange(len(y)), y].mean()
    return f"log loss {loss:.4f}  accuracy {100 * (log_proba.argmax(axis=1) == y).mean():.2f} %"


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return run(), time.process_time() - start


def truth(stable: Any, X: Any, beta: Any) -> Any:
    logits = np.log(stable) + np.column_stack([np.zeros(len(X)), 2.0 * (X * beta).sum(axis=1)])
    return logits - np.logaddexp(logits[:, :1], logits[:, 1:])


def simulation(n_domains: int) -> None:
    stable, X, domain, y, beta = simulate(n_domains)
    heads, seconds = timed(lambda: fit_pooled_heads(stable, X, domain))
    some = np.random.default_rng(1).choice(n_domains, min(n_domains, 100), replace=False)
    rows = np.flatnonzero(np.isin(domain, some))
    f, U, d, labels = stable[rows], X[rows], domain[rows], y[rows]
    alone = np.empty_like(f)

    def loop() -> None:
        for name in some:
            mine = d == name
            adapted = sfboost.adapt(f[mine], U[mine], answer="paper")
            alone[mine] = adapted.predict_log_proba(f[mine], U[mine])

    _, slow = timed(loop)
    slow *= n_domains / len(some)
    one, one_time = timed(lambda: sfboost.adapt(stable, X, answer="paper"))
    print(f"{n_domains:,} domains, {len(X):,} rows; scores on {len(some)} domains")
    print(f"  stable alone        {score(np.log(f), labels)}")
    print(f"  one head for all    {score(one.predict_log_proba(f, U), labels)}  {one_time:.1f} s")
    print(
        f"  each by itself      {score(alone, labels)}  {slow:.1f} s ({1000 * slow / n_domains:.0f} ms each)"
    )
    pooled = heads.predict_log_proba(f, U, d)
    print(f"  partial pooling     {score(pooled, labels)}  {seconds:.1f} s, {heads.n_rounds} rounds")
    print(f"  the truth           {score(truth(f, U, beta[d]), labels)}")
    print(f"  times faster than the loop: {slow / seconds:.0f} (wanted: at least 20)")


def best(n_domains: int, n_classes: int, rare: float | None) -> None:
    """Every domain its own best answer, against a loop over `adapt`."""
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
    some = rng.choice(n_domains, min(n_domains, 300), replace=False)
    alone = np.empty_like(said)

    def loop() -> None:
        for name in some:
            mine = domain == name
            alone[mine] = model.adapt(X[mine]).predict_log_proba(X[mine])

    _, slow = timed(loop)
    slow *= n_domains / len(some)
    print(f"{n_domains:,} domains, {len(X):,} rows, {mirrored.sum()} mirrored; scores on {len(some)} domains")
    answers = {
        "stable alone": model.predict_log_proba(X),
        "all as trained": model.answer_rows(X).view.log_pooled,
        "one head for all": model.adapt(X, answer="paper").predict_log_proba(X),
        "all as one domain": model.adapt(X).predict_log_proba(X),
        "each by itself": alone,
        "many": said,
    }
    for kind, there in (("mirrored", mirrored), ("as ever", ~mirrored), ("all", mirrored | True)):
        rows = np.isin(domain, some) & there[domain]
        for name, log_proba in answers.items():
            print(f"  {kind}: {name:<18} {score(log_proba[rows], y[rows])}")
    found = {row.name for row in many.overview() if row.verdict == "changed"}
    false = len([name for name in found if not mirrored[name]])
    print(
        f"  called changed: {len(found)}, of which {100 * false / max(len(found), 1):.1f} % are not (at most "
        f"5 % wanted); {100 * (len(found) - false) / mirrored.sum():.0f} % of the mirrored found"
    )
    chance = np.array([row.chance for row in sorted(many.overview(), key=lambda row: row.name)])
    print(
        f"  likely changed: {(chance > 0.5).sum()}, of which {(~mirrored)[chance > 0.5].sum()} are not; "
        f"the mean chance is {chance.mean():.3f}, {mirrored.mean():.3f} are mirrored"
    )
    print(f"  {seconds:.1f} s to adapt and {to_say:.1f} s to predict; the loop would take {slow:.0f} s")
    print(f"  times faster than the loop: {slow / (seconds + to_say):.0f} (wanted: at least 20)")


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
        print(f"  one head, {answer:<9} {score(one.predict_log_proba(X), y)}  {one.decision_}")
        alone = model.predict_log_proba(X)
        for name in np.unique(where):
            rows = where == name
            if rows.sum() > 1:
                alone[rows] = model.adapt(X[rows], answer=answer).predict_log_proba(X[rows])
        print(f"  each, {answer:<13} {score(alone, y)}")
        many, seconds = timed(lambda asked=answer: model.adapt(X, sample_domain=where, answer=asked))
        decisions = ", ".join(sorted(set(many.decision_.values())))
        found = score(many.predict_log_proba(X, where), y)
        print(f"  pooled, {answer:<11} {found}  {decisions}, {seconds:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--domains", type=int, default=10_000)
    parser.add_argument("--best", action="store_true")
    parser.add_argument("--classes", type=int, default=2, help="with --best")
    parser.add_argument("--rare", type=float, help="with --best: share of the last class, if not an even one")
    parser.add_argument("--eicu", action="store_true")
    parser.add_argument("--unstable", nargs="+", default=[], help="of eICU; by default those of the split")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.eicu:
        eicu(options.unstable)
    elif options.best:
        best(options.domains, options.classes, options.rare)
    else:
        simulation(options.domains)


if __name__ == "__main__":
    main()
