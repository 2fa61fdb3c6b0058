"""The verdict table of docs/diagnostics.md: what the checks say of the paper's counter-examples.

python studies/study_counterexamples.py --rows 2000
"""

from __future__ import annotations

import argparse

import numpy as np

from sfboost.diagnostics import diagnose, make_new_rows, make_training_rows
from sfboost.diagnostics.counterexamples import COUNTER_EXAMPLES, counter_example

SHOWN = {
    "informativeness": "training",
    "complementarity": "training",
    "complementarity, new domain": "new",
    "feasibility, new domain": "new",
    "anything to gain": "new",
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
    for name in COUNTER_EXAMPLES:
        parts = [counter_example(name, arguments.rows, 3 * arguments.seed + i) for i in range(3)]
        training = make_training_rows(
            np.vstack([part.posterior for part in parts[:2]]),
            np.concatenate([part.y for part in parts[:2]]),
            np.repeat(["a", "b"], arguments.rows),
            np.vstack([part.X_unstable for part in parts[:2]]),
        )
        report = diagnose(training, make_new_rows(parts[2].posterior, parts[2].X_unstable))
        print(f"| {name} | " + " | ".join(report[check].verdict for check in SHOWN) + " |")


if __name__ == "__main__":
    main()
