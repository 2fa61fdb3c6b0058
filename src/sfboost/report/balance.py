"""Class shares of the training domains, and how far the new domain's are from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from sfboost.diagnostics import CheckResult
from sfboost.marginal.probabilities import FloatArray

_NOTICEABLE = 0.1


@dataclass(frozen=True)
class BalanceSketch:
    """Mean and covariance of f_S over the held-out training rows, and each domain's class shares.

    Attributes
    ----------
    mean : tuple of float, of length K
    covariance : tuple of tuples, of shape (K, K)
    shares : mapping of domain to class shares
    n_rows : int
    """

    mean: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    shares: dict[str, tuple[float, ...]]
    n_rows: int

    def check(self, stable: FloatArray) -> CheckResult:
        """Total variation between the shares f_S implies here and in training, as `check_prior_drift`."""
        difference = stable.mean(axis=0) - np.array(self.mean)
        sign = np.sign(difference)
        drift = 0.5 * float(np.abs(difference).sum())
        training = 0.25 * float(sign @ np.array(self.covariance) @ sign) / self.n_rows
        new = float(np.var(0.5 * stable @ sign, ddof=1)) / len(stable) if len(stable) > 1 else np.inf
        error = float(np.sqrt(training + new))
        seen = {
            name: 0.5 * float(np.abs(np.array(share) - np.array(self.mean)).sum())
            for name, share in self.shares.items()
        }
        widest = max(seen.values())
        found = (
            f"Class shares differ from training by {drift:.3f} ± {error:.3f} (total variation); training "
            f"domains differ by up to {widest:.3f}."
        )
        remedy = ""
        far = drift - 1.64 * error > max(widest, _NOTICEABLE)
        if far:
            remedy = "If the label causes the stable features, use stability = 'likelihood' (label shift)."
        return CheckResult(
            "prior drift",
            "doubtful" if far else "holds",
            found,
            remedy,
            drift,
            error,
            None,
            {"by_domain": seen},
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        return cls(
            tuple(values["mean"]),
            tuple(tuple(row) for row in values["covariance"]),
            {name: tuple(share) for name, share in values["shares"].items()},
            values["n_rows"],
        )
