"""All adapters that work from cached outputs, over the eleven ColoredMNIST domains, for one trained model.

One short training on real MNIST makes the model (SFB features, which every adapter can use); one forward pass
per domain then serves all adapters. The figure is seconds per adapter and in total, beside the forward passes
that the cache saves. Without MNIST the embedded digits stand in, and the output says so.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from sfboost_lab.baselines import ADAPTERS, TRAINERS
from sfboost_lab.baselines.harness import Cached, adapt, domain_rows, fit
from sfboost_lab.datasets import load

NAMES = ("none", "pl-last", "t3a", "tent", "shot", "sfb-paper", "sfb", "sfb-leak", "fine-tune", "sfb-labels")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, help="folder that holds mnist/; default: the usual places")
    parser.add_argument("--trainer", default="sfb", help="any trainer with a head and a colored_mnist preset")
    parser.add_argument("--adapter", nargs="+", default=NAMES, choices=tuple(ADAPTERS))
    parser.add_argument("--steps", type=int, help="steps of training; default: the preset")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    dataset = _data(args.data_dir)
    changes = {} if args.steps is None else {"steps": args.steps}
    start = time.perf_counter()
    model = fit(TRAINERS[args.trainer].preset("colored_mnist", **changes), dataset, seed=0)
    print(f"{dataset.name}, {args.trainer}: trained in {time.perf_counter() - start:.1f} s")
    worked = time.process_time()
    seconds, accuracy, forward = _measure(model, dataset, args.adapter)
    worked = time.process_time() - worked
    agreements = [dataset.domain(name).agreement for name in dataset.test]
    print("adapter".ljust(12) + " seconds" + "".join(f"{a:>7.1f}" for a in agreements))
    for name in args.adapter:
        row = "".join(f"{100 * value:7.1f}" for value in accuracy[name])
        mark = " ORACLE" if ADAPTERS[name].test_access == "labelled" else ""
        print(f"{name.ljust(12)} {seconds[name]:7.2f}{row}{mark}")
    total = forward + sum(seconds.values())
    print(
        f"all adapters from cached outputs {total:.1f} s, of which forward passes {forward:.1f} s; "
        f"processor time {worked:.1f} s (less than the clock where the machine is shared)"
    )
    print(f"forward passes that the cache saves {forward * (len(args.adapter) - 1):.1f} s")


def _data(data_dir: Path | None) -> Any:
    try:
        return load("colored_mnist", data_dir=data_dir)
    except (FileNotFoundError, OSError, ValueError) as error:
        print(f"No MNIST here ({error}); the embedded digits stand in.")
        return load("colored_digits")


def _measure(model: Any, dataset: Any, names: Any) -> tuple[dict[str, float], dict[str, list[float]], float]:
    seconds, accuracy, forward = dict.fromkeys(names, 0.0), {name: [] for name in names}, 0.0
    for domain in (dataset.domain(name) for name in dataset.test):
        whole = domain_rows(domain, "unlabelled", 0)
        cached = Cached(model, whole.scored.X)
        start = time.perf_counter()
        for output in ("features", "predict_proba", "stable_and_unstable"):
            if hasattr(model, output):
                getattr(cached, output)(whole.scored.X)
        forward += time.perf_counter() - start
        for name in names:
            adapter = ADAPTERS[name]()
            rows = domain_rows(domain, adapter.test_access, 0)
            source = model if adapter.test_access == "labelled" else cached
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                predicted = adapt(source, adapter, rows, seed=0).predict(rows.scored.X)
            seconds[name] += time.perf_counter() - start
            accuracy[name].append(float((predicted == rows.scored.y).mean()))
    return seconds, accuracy, forward


if __name__ == "__main__":
    main()
