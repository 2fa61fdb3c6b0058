"""ColoredMNIST: how much of a baseline's accuracy at agreement 0.1 is a matter of when it is stopped.

    SFBOOST_DATA=... python studies/study_stopping.py            # SD; ten minutes of a core
    SFBOOST_DATA=... python studies/study_stopping.py erm groupdro

400 steps of empirical risk at the published rate, in batches of 2500 rows a domain, then some steps under the
penalty with a rate that falls to zero. Accuracy at agreement 0.9, 0.5 and 0.1; colour says nothing at 0.5,
where 75 is the ceiling.
"""

from __future__ import annotations

import argparse

import torch

from sfboost_lab.baselines import TRAINERS
from sfboost_lab.baselines.contract import LabelledRows
from sfboost_lab.datasets import load

_DOMAINS = ("test-0.9", "test-0.5", "test-0.1")
#: Weights, or for GroupDRO step sizes, of the published sweeps.
_SWEEPS = {
    "erm": [{}],
    "groupdro": [{"step_size": 1.0}, {"step_size": 0.01}],
    "sd": [{"weight": weight} for weight in (1, 10, 100)],
    "iga": [{"weight": weight} for weight in (1e4, 1e5, 1e3)],
    "vrex": [{"weight": weight} for weight in (1e3, 1e4)],
    "irm": [{"weight": weight} for weight in (1e4, 1e5)],
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("methods", nargs="*", default=["sd"], help=", ".join(_SWEEPS))
    parser.add_argument("--steps", type=int, nargs="+", default=[25, 100, 200, 400])
    parser.add_argument("--batch-size", type=int, default=2500, help="rows a domain; 25 000 are all")
    parser.add_argument("--weights", type=float, nargs="+", help="instead of those of the sweep")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dataset = load("colored_mnist", random_state=args.seed)
    train = LabelledRows(*dataset.pooled(list(dataset.train)))
    test = {name: dataset.xy(name) for name in _DOMAINS}
    start = None
    for method in args.methods:
        sweep = [{"weight": weight} for weight in args.weights] if args.weights else _SWEEPS[method]
        for chosen in sweep:
            for steps in args.steps:
                trainer = TRAINERS[method].preset(
                    "colored_mnist", batch_size=args.batch_size, steps=steps, **chosen
                )
                start = start or trainer.pretrain(train, seed=args.seed)
                model = trainer.fit(train, seed=args.seed, start=start)
                found = [100 * float((model.predict(X) == y).mean()) for X, y in test.values()]
                result = "  ".join(f"{name} {value:.1f}" for name, value in zip(test, found, strict=True))
                print(f"{method} {chosen}, {steps} steps: {result}", flush=True)


if __name__ == "__main__":
    main()
