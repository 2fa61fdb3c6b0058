"""The verdict table of docs/diagnostics.md: what the checks say of the paper's counter-examples.

python studies/study_counterexamples.py --rows 2000
"""

from __future__ import annotations

import argparse

import numpy as np

from sfboost.diagnostics import diagnose, make_new_rows, make_training_rows
from sfboost_lab.theory import EXAMPLES

SHOWN = {
    "informativeness": "training",
    "complementarity": "training",
    "complementarity, new domain": "new",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=int, default=2000, help="rows of each of two training domains and the new"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| example | " + " | ".join(SHOWN) + " |")
    print("|---" * (len(SHOWN) + 1) + "|")
    for name, make in EXAMPLES.items():
        joint = make()
        drawn = [joint.sample(arguments.rows, 3 * arguments.seed + i) for i in range(3)]
        stable, unstable, y = (np.stack(part) for part in zip(*drawn, strict=True))
        f, U = joint.stable_posterior[stable], unstable[..., None].astype(float)
        domain = np.repeat(["a", "b"], arguments.rows)
        training = make_training_rows(np.vstack(f[:2]), np.concatenate(y[:2]), domain, np.vstack(U[:2]))
        report = diagnose(training, make_new_rows(f[2], U[2]))
        print(f"| {name} | " + " | ".join(report[check].verdict for check in SHOWN) + " |")


if __name__ == "__main__":
    main()
