"""100 seeds of the synthetic network at batch 128: all at once beside one after the other, on one thread.

Both train the same networks on the same batches (their weights agree to rounding); the figure is the ratio of
seconds per step and seed. A few seeds stand for the sequential way, whose cost is proportional to their
number.
"""

from __future__ import annotations

import argparse
import copy
import time

import numpy as np
import torch

from sfboost.torch.learning import Learner
from sfboost.torch.networks import MLP
from sfboost.torch.plan import Goal, Plan
from sfboost.torch.rows import ArraySource
from sfboost.torch.split_network import build_network
from sfboost_lab.baselines.learned.ensemble import learn_many


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--alone", type=int, default=4, help="seeds trained one after the other")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    goal = Goal(split="shared", penalty_weight=10.0)
    plan = Plan(steps=args.steps, learning_rate=0.01, batch_size=128)
    sources, networks = [], []
    for seed in range(args.seeds):
        y, d = rng.integers(0, 2, 2048), np.repeat([0, 1], 1024)
        x = torch.tensor(rng.normal(size=(2048, 2)) + y[:, None], dtype=torch.float32)
        sources.append(ArraySource(x, y, d, 2, 2))
        networks.append(
            build_network(
                lambda: MLP(2, (8, 8)),
                x[:2],
                split="shared",
                n_classes=2,
                n_domains=2,
                n_stable=1,
                n_unstable=1,
                seed=seed,
            )
        )
    alone = copy.deepcopy(networks[: args.alone])
    start = time.perf_counter()
    for seed, network in enumerate(alone):
        Learner(network, sources[seed], goal, plan, seed=seed).learn()
    one = (time.perf_counter() - start) / args.alone / args.steps
    start = time.perf_counter()
    learn_many(networks, sources, [goal] * args.seeds, list(range(args.seeds)), plan)
    many = (time.perf_counter() - start) / args.seeds / args.steps
    gap = max(
        float((a - b).abs().max())
        for m, n in zip(networks, alone, strict=False)
        for a, b in zip(m.state_dict().values(), n.state_dict().values(), strict=True)
    )
    print(f"one after the other {1e3 * one:.3f} ms a step and seed")
    print(f"{args.seeds} at once         {1e3 * many:.3f} ms a step and seed, {one / many:.1f} x")
    print(f"largest difference of a weight {gap:.1e} (float32)")


if __name__ == "__main__":
    main()
