"""IRM on CE-DD as its published baseline trains it, beside full batches: where the paper's 69.6 comes from.

    python benchmarks/study_irm.py

The published code penalises the gradient of the risk by the whole matrix β (fixed at [I; 0]), without
annealing, in batches of 128 rows in fixed order, 800 steps of Adam at 0.01 (λ = 137.38 on CE-DD). All seeds
train as one batched network. Accuracy at agreement 0.1, mean over seeds ± standard error; ceiling 75.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from sfboost.datasets import load

_WIDTHS = ((2, 8), (8, 8), (8, 3))
_BETA = torch.eye(3)[:, :2]


def start(n_seeds: int) -> list[Tensor]:
    """Weights and biases of every seed, by torch's default rule."""
    parameters = []
    for seed in range(n_seeds):
        generator = torch.Generator().manual_seed(seed)
        for rows, columns in _WIDTHS:
            bound = rows**-0.5
            for shape in ((rows, columns), (1, columns)):
                parameters.append((2 * torch.rand(shape, generator=generator) - 1) * bound)
    n_each = 2 * len(_WIDTHS)
    return [torch.stack(parameters[i::n_each]).requires_grad_() for i in range(n_each)]


def features(parameters: list[Tensor], x: Tensor) -> Tensor:
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        x = torch.relu(x) if weight.shape[1] != 2 else x
        x = torch.baddbmm(bias, x, weight)
    return x


def objective(parameters: list[Tensor], x: Tensor, y: Tensor, weight: float) -> Tensor:
    """Risk + weight · mean squared gradient by β, of one domain, summed over seeds."""
    phi = features(parameters, x)
    logits = phi @ _BETA
    risk = F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none").view(y.shape).mean(1)
    residual = (logits.softmax(-1) - F.one_hot(y, 2)) / y.shape[1]
    gradient = phi.transpose(1, 2) @ residual
    return (risk + weight * gradient.square().mean((1, 2))).sum()


def train(domains: list[tuple[Tensor, Tensor]], batch_size: int, weight: float, steps: int) -> list[Tensor]:
    n_seeds, n_rows = domains[0][1].shape
    parameters = start(n_seeds)
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    for step in range(steps):
        first = step * batch_size % n_rows
        rows = slice(first, first + batch_size)
        optimizer.zero_grad(set_to_none=True)
        sum(objective(parameters, x[:, rows], y[:, rows], weight) for x, y in domains).backward()
        optimizer.step()
    return parameters


def rows_of(names: list[str], n_seeds: int) -> list[tuple[Tensor, Tensor]]:
    drawn = [load("ce_dd", n_rows=1024, random_state=seed) for seed in range(n_seeds)]
    made = []
    for name in names:
        pairs = [dataset.xy(name) for dataset in drawn]
        x = torch.from_numpy(np.stack([np.asarray(X, dtype=np.float32) for X, _ in pairs]))
        made.append((x, torch.from_numpy(np.stack([y for _, y in pairs])).long()))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(1)
    names = load("ce_dd", n_rows=2)
    domains = rows_of(list(names.train), args.seeds)
    ((x, y),) = rows_of(list(names.test), args.seeds)
    for batch_size in (128, 1024):
        for weight in (50.0, 137.38, 400.0):
            parameters = train(domains, batch_size, weight, 800)
            with torch.no_grad():
                guess = (features(parameters, x) @ _BETA).argmax(-1)
            accuracy = 100 * (guess == y).double().mean(1)
            error = accuracy.std() / args.seeds**0.5
            low = int((accuracy < 60).sum())
            result = f"{accuracy.mean():.1f} ± {error:.1f}, below 60 in {low} seeds"
            print(f"rows a step {batch_size:4}, λ {weight:6g}: {result}", flush=True)


if __name__ == "__main__":
    main()
