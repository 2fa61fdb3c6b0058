"""PACS with the last block of a pretrained network fine-tuned, one style as the new domain.

    python studies/fine_tune_pacs.py --test sketch --out results/fine-tune

What lies below the last block is frozen: its maps are computed once and kept in --out. The last block, which
is trained with the heads, reads them. Batch norm keeps its statistics. Needs PACS.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sfboost.adaptation import Settings
from sfboost.datasets.images import decode_all
from sfboost.torch import Plan, SFBClassifier
from sfboost.torch.efficientnet import EfficientNetLite0
from sfboost_lab.baselines.contract import LabelledRows
from sfboost_lab.baselines.embeddings import SFBComponents
from sfboost_lab.baselines.learned.generalisation import ERMTrainer
from sfboost_lab.datasets import load

DOMAINS = ("photo", "art_painting", "cartoon", "sketch")


class Tail(nn.Module):
    """The trained end of a network, pooled; its batch norm stays in evaluation."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).mean(dim=(2, 3))

    def train(self, mode: bool = True) -> Tail:
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self


def cut_efficientnet() -> tuple[Callable[[Tensor], Tensor], Tail]:
    net = EfficientNetLite0().net.eval()
    first = nn.Sequential(net._conv_stem, net._bn0, net._swish, *net._blocks[:-1])
    last = nn.Sequential(net._blocks[-1], net._conv_head, net._bn1, net._swish)
    return lambda x: first((x - 127.0) / 128.0), Tail(last)


def maps_of(pictures: Any, below: Callable[[Tensor], Tensor], size: int, file: Path) -> np.ndarray:
    """The maps below the last block, from the file if it is there."""
    if file.exists():
        return np.load(file)
    files = pictures.resized(size).files
    made = []
    with torch.inference_mode():
        for start in range(0, len(files), 8):
            batch = torch.from_numpy(decode_all(files[start : start + 8], (size, size))).float()
            made.append(below(batch).numpy())
            if start % 800 == 0:
                print(f"  {file.stem}: {start} of {len(files)} pictures", flush=True)
    maps = np.concatenate(made)
    part = file.with_suffix(".part.npy")
    np.save(part, maps)
    part.replace(file)
    return maps


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--test", choices=DOMAINS, default="sketch")
    parser.add_argument("--size", type=int, default=160)
    parser.add_argument("--epochs", type=float, default=2.0)
    parser.add_argument("--batch-size", type=int, default=32, help="rows per domain and step")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/fine-tune"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    below, tail = cut_efficientnet()
    name = "efficientnet-lite0"
    pictures = load("pacs", test=args.test)
    rows = {}
    for domain in DOMAINS:
        X, y = pictures.xy(domain)
        rows[domain] = maps_of(X, below, args.size, args.out / f"{name}-{args.size}-{domain}.npy"), y
    train = [d for d in DOMAINS if d != args.test]
    X = np.concatenate([rows[d][0] for d in train])
    y = np.concatenate([rows[d][1] for d in train])
    domain = np.repeat(train, [len(rows[d][1]) for d in train])
    X_new, y_new = rows[args.test]
    longest = max(len(rows[d][1]) for d in train)
    steps = round(args.epochs * longest / args.batch_size)
    schedule = {"steps": steps, "learning_rate": args.learning_rate, "batch_size": args.batch_size}

    def show(method: str, predictor: Any, seconds: float) -> None:
        accuracy = float((predictor.predict(X_new) == y_new).mean())
        print(f"{name}, {args.test}: {method:<28} {100 * accuracy:.1f}   ({seconds:.0f} s)", flush=True)
        line = {"network": name, "test": args.test, "method": method, "seed": args.seed, "accuracy": accuracy}
        with (args.out / "results.jsonl").open("a") as file:
            file.write(json.dumps({**line, "steps": steps, "size": args.size}) + "\n")

    start = time.perf_counter()
    fitted = ERMTrainer(network=tail, **schedule).fit(LabelledRows(X, y, domain), seed=args.seed)
    show("ERM", fitted, time.perf_counter() - start)
    show("ERM, SFB on its components", SFBComponents().adapt(fitted, X_new), time.perf_counter() - start)
    plan = Plan(**schedule, unstable_steps=steps // 2)
    paper = {"plan__balance": False, "flatten": False, "calibration": "ece", "penalty_weight": 1.0}
    for title, options, how in (("paper", paper, {"settings": Settings("paper")}), ("ours", {}, {})):
        start = time.perf_counter()
        model = SFBClassifier(tail, plan=plan, random_state=args.seed).set_params(**options)
        model.fit(X, y, sample_domain=domain)
        show(f"SFB ({title}), no adaptation", model, time.perf_counter() - start)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adapted = model.adapt(X_new, answer="paper", **how)
        show(f"SFB ({title})", adapted, time.perf_counter() - start)


if __name__ == "__main__":
    main()
