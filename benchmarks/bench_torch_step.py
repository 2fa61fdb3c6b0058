"""One full-batch ColoredMNIST step: the fused network beside the plain PyTorch loop, in the same run.

2 x 25 000 rows of 392 numbers, three hidden layers of 390 units, dropout 0.2, Adam. The two ways take
turns, so that a busy machine slows both; the figure is the ratio of the median times. With --accuracy both
also train on coloured digits made of noise-free prototypes, and their final accuracies are printed side by
side.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from sfboost.torch.networks import MLP
from sfboost.torch.precision import resolve_precision

ROWS, INPUTS, UNITS, LAYERS, DROPOUT = 50_000, 392, 390, 3, 0.2


def plain_network() -> nn.Module:
    layers: list[nn.Module] = []
    for depth in range(LAYERS):
        layers += [nn.Linear(INPUTS if depth == 0 else UNITS, UNITS), nn.ReLU(), nn.Dropout(DROPOUT)]
    return nn.Sequential(*layers, nn.Linear(UNITS, 1))


def fused_network() -> nn.Module:
    network = nn.Sequential(MLP(INPUTS, [UNITS] * LAYERS, dropout=DROPOUT, fused=True), nn.Linear(UNITS, 1))
    # The same start as the plain network: only the way of computing differs.
    start = list(plain_network().state_dict().values())
    network.load_state_dict(dict(zip(network.state_dict(), start, strict=True)))
    return network


def stepper(
    network: nn.Module, x: torch.Tensor, y: torch.Tensor, rate: float, autocast: bool
) -> Callable[[], float]:
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    network.train()

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            logits = network(x)[:, 0]
        loss = nn.functional.binary_cross_entropy_with_logits(logits.float(), y)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def coloured_prototypes(n: int, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Ten fixed pictures with pixel noise, label = picture < 5 flipped in a quarter of the rows."""
    shapes = np.random.default_rng(0).random((10, 196)) < 0.3
    digit = rng.integers(0, 10, n)
    y = (digit < 5) ^ (rng.random(n) < 0.25)
    colour = y ^ (rng.random(n) < 0.15)
    grey = np.abs(shapes[digit] + rng.normal(0, 0.4, (n, 196)))
    x = np.zeros((n, 2, 196), dtype=np.float32)
    x[np.arange(n), colour.astype(int)] = grey
    return torch.from_numpy(x.reshape(n, -1)), torch.from_numpy(y.astype(np.float32))


def accuracies(steps: int) -> None:
    rng = np.random.default_rng(1)
    (x, y), (x_test, y_test) = coloured_prototypes(10_000, rng), coloured_prototypes(10_000, rng)
    for name, make in (("plain", plain_network), ("fused", fused_network)):
        torch.manual_seed(0)
        network = make()
        step = stepper(network, x, y, 1e-3, False)
        for _ in range(steps):
            step()
        network.eval()
        with torch.no_grad():
            right = ((network(x_test)[:, 0] > 0) == (y_test > 0.5)).float().mean().item()
        print(f"{name} accuracy after {steps} steps: {100 * right:.2f} %")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--accuracy", type=int, default=60, metavar="STEPS", help="0 leaves it out")
    args = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(ROWS, INPUTS, generator=generator)
    y = (torch.rand(ROWS, generator=generator) > 0.5).float()
    precision = resolve_precision("auto", torch.device("cpu"))
    ways = {
        "plain": stepper(plain_network(), x, y, 1e-4, False),
        "fused": stepper(fused_network(), x, y, 1e-4, False),
    }
    if precision.autocast:
        network = nn.Sequential(MLP(INPUTS, [UNITS] * LAYERS, dropout=DROPOUT), nn.Linear(UNITS, 1))
        ways["bfloat16"] = stepper(network, x, y, 1e-4, True)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(args.repeats + 1):
        for name, step in ways.items():
            start = time.perf_counter()
            step()
            if turn:  # the first turn pays for memory
                seconds[name].append(time.perf_counter() - start)
    print(f"threads {torch.get_num_threads()}, precision {precision.name} ({precision.reason})")
    median = {name: statistics.median(values) for name, values in seconds.items()}
    for name, value in median.items():
        print(f"{name:9s} {value:6.2f} s a step, {median['plain'] / value:.2f} x plain")
    if args.accuracy:
        accuracies(args.accuracy)


if __name__ == "__main__":
    main()
