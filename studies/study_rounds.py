"""ColoredMNIST: rate, steps, scale of Φ_U and rounds of the paper's head.

    SFBOOST_DATA=... python studies/study_rounds.py --out results

Features of SFB (paper) with the published steps, with the short schedule, and ours (`sfboost-lab reproduce
cmnist` leaves the trained f_S in the same folder; without it they are trained, some minutes each). The
head is that of Algorithm 1: restarted in each round, corrected in the first. For every setting: accuracy
on held-out rows of the training domains after three rounds, by which the experiments choose, and accuracy
at agreement 0.1 after 1 to 5 rounds, mean over seeds.
"""

from __future__ import annotations

import argparse
import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from sfboost_lab.baselines.sfb import SFBPaper, SFBPaperAsIs, outputs_of
from sfboost_lab.experiments.cmnist import SHORT_IRM, STEADY_IRM, UNSTABLE, group, models, rows_of
from sfboost_lab.experiments.engines import Session
from sfboost_lab.experiments.measuring import fit_by_contract
from sfboost_lab.experiments.networks import beside, fit_beside
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.store import Cache

_HELD, _TEST = ("held/train-0.9", "held/train-0.8"), "test-0.1"
_ROUNDS = range(1, 6)
_CHOSEN_AT = 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, nargs="+", default=[5, 10, 15, 20], help="of the head")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.1, 0.01], help="of Adam")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of trained models")
    args = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for seed in range(args.seeds):
        for title, run in _features(seed):
            rows = rows_of(run)
            session = Session(group([run]), Cache(args.out / "cache"))
            model = (fit_beside if "stable" in run.hyper else fit_by_contract)(run, session, rows)
            places = {place.name: place for place in rows.places}
            for name, rounds in [*((name, _CHOSEN_AT) for name in _HELD), *((_TEST, r) for r in _ROUNDS)]:
                seen = _Seen(outputs_of(model, places[name].X), model.classes_)
                for kind, rate, steps in itertools.product((SFBPaper, SFBPaperAsIs), args.rates, args.steps):
                    adapter = kind(steps=steps, learning_rate=rate, rounds=rounds)
                    right = adapter.adapt(seen, places[name].X, seed=seed).predict(places[name].X)
                    setting = (
                        title,
                        kind.standardize,
                        rate,
                        steps,
                        name if name == _TEST else "held",
                        rounds,
                    )
                    found[setting].append(100 * float((right == places[name].y).mean()))
    for title, standardize, rate, steps in dict.fromkeys(setting[:4] for setting in found):
        own = (title, standardize, rate, steps)
        held = np.mean(found[*own, "held", _CHOSEN_AT])
        curve = " ".join(f"{np.mean(found[*own, _TEST, rounds]):5.1f}" for rounds in _ROUNDS)
        scale = "standardised" if standardize else "as it comes"
        print(f"{title}, Φ_U {scale}, rate {rate}, {steps:2} steps: held out {held:.2f}, at 0.1 {curve}")


def _features(seed: int) -> Iterator[tuple[str, Run]]:
    for title, stable in (("published steps", STEADY_IRM), ("short schedule", SHORT_IRM)):
        yield title, beside(models("irm", seed, False, [stable])[0], **UNSTABLE)
    yield "ours", models("sfb", seed, False)[0]


class _Seen:
    """A predictor whose f_S and Φ_U of the rows are known."""

    def __init__(self, parts: tuple[np.ndarray, np.ndarray], classes: np.ndarray) -> None:
        self._stable, self._unstable, self.classes_ = np.log(parts[0]), parts[1], classes

    def stable_and_unstable(self, X: object) -> tuple[np.ndarray, np.ndarray]:
        return self._stable, self._unstable


if __name__ == "__main__":
    main()
