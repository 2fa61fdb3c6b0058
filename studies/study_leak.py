"""How much of the unstable feature a penalty leaves in f_S on AC, and what that costs after adapting.

    python studies/study_leak.py --draws 2000

1. The population: the exact minimiser of mean risk + λ · penalty over log-odds w_S x_S + w_U x_U: w_U, its
   weight on the unstable feature, and "adapted", the exact accuracy of the paper's correction at agreement
   0.1 (ceiling 0.9).
2. A sample: with 1024 rows a domain and λ → ∞, the standard deviation of w_U over draws (the
   minimiser on sampled rows), and the share of draws whose correction fails at agreement 0.1.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

STABLE, TRAIN, TEST = 0.75, (0.95, 0.7), 0.1
CELLS = np.array([(y, s, u) for y in (-1, 1) for s in (-1, 1) for u in (-1, 1)], dtype=float)


def law(agreement: float) -> np.ndarray:
    """Probability of each (y, x_S, x_U)."""
    y, s, u = CELLS.T
    return 0.5 * np.where(s == y, STABLE, 1 - STABLE) * np.where(u == y, agreement, 1 - agreement)


def risk_and_gradient(w: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Log loss and IRM's derivative in the scale of the log-odds."""
    y, z = CELLS[:, 0], CELLS[:, 1:] @ w
    loss = np.logaddexp(0.0, -y * z)
    return float(weights @ loss), float(weights @ (z * (expit(z) - (y > 0))))


def penalised(w: np.ndarray, weight: float, penalty: str, domains: list[np.ndarray]) -> float:
    risks, gradients = np.array([risk_and_gradient(w, d) for d in domains]).T
    value = (gradients**2).mean() if penalty == "irm" else risks.var()
    return float((risks.mean() + weight * value) / max(weight, 1.0))


def fit(weight: float, penalty: str, domains: list[np.ndarray]) -> np.ndarray:
    """The better of the minima reached from the stable solution and from empirical risk."""
    starts = [np.array([logit(STABLE), 0.0]), np.array([1.1, 1.8])]
    found = [
        minimize(
            penalised,
            start,
            (weight, penalty, domains),
            method="Nelder-Mead",
            options={"xatol": 1e-7, "fatol": 1e-13, "maxiter": 4000},
        )
        for start in starts
    ]
    return min(found, key=lambda result: result.fun).x


def adapted_accuracy(w: np.ndarray, agreement: float = TEST) -> float:
    """Exact accuracy of the corrected and combined classifier in the population."""
    weights, u = law(agreement), CELLS[:, 2]
    f = expit(CELLS[:, 1:] @ w)
    mean = weights @ f
    sensitivity = weights @ f**2 / mean + weights @ (1 - f) ** 2 / (1 - mean) - 1
    specificity = weights @ (1 - f) ** 2 / (1 - mean)
    combined = np.empty(len(f))
    for value in (-1, 1):
        here = u == value
        soft = weights[here] @ f[here] / weights[here].sum()
        corrected = np.clip((soft + specificity - 1) / sensitivity, 1e-6, 1 - 1e-6)
        combined[here] = logit(f[here]) + logit(corrected) - logit(mean)
    return float(weights @ ((combined > 0) == (CELLS[:, 0] > 0)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--rows", type=int, default=1024)
    arguments = parser.parse_args()
    domains = [law(a) for a in TRAIN]
    print("| λ | IRM: w_U | adapted | V-REx: w_U | adapted |\n|---|---|---|---|---|")
    for weight in (1, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 10_000):
        cells = []
        for penalty in ("irm", "vrex"):
            w = fit(weight, penalty, domains)
            cells += [f"{w[1]:.2f}", f"{100 * adapted_accuracy(w):.1f}"]
        print(f"| {weight} | " + " | ".join(cells) + " |")
    rng = np.random.default_rng(0)
    for penalty in ("irm", "vrex"):
        found = []
        for _ in range(arguments.draws):
            sample = [rng.multinomial(arguments.rows, d) / arguments.rows for d in domains]
            w = fit(1e6, penalty, sample)
            found.append((w[1], adapted_accuracy(w)))
        w_unstable, accuracy = np.array(found).T
        failed = 100 * (accuracy < 0.85).mean()
        print(
            f"{penalty}, λ = 1e6, {arguments.rows} rows a domain, {arguments.draws} draws: w_U "
            f"{w_unstable.mean():+.3f}, s.d. {w_unstable.std():.3f}; adapted {100 * accuracy.mean():.1f}, "
            f"below 85 in {failed:.0f} %"
        )


if __name__ == "__main__":
    main()
