"""Drift of the class shares: further than between the training domains, or not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from sfboost.diagnostics.inputs import CheckInputs, TrainingRows
from sfboost.diagnostics.result import CheckResult
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

    @classmethod
    def of(cls, rows: TrainingRows) -> Self:
        """Sketch labelled rows with held-out f_S."""
        shares = {str(name): tuple(rows.onehot[mine].mean(axis=0).tolist()) for name, mine in rows.by_domain}
        return cls(
            mean=tuple(rows.stable.mean(axis=0).tolist()),
            covariance=tuple(tuple(row) for row in np.cov(rows.stable.T).tolist()),
            shares=shares,
            n_rows=len(rows.stable),
        )

    def check(self, stable: FloatArray) -> CheckResult:
        """Total variation between the class shares that f_S implies here and in training.

        Drift is no violation of the paper's assumptions; but if P(X_S | Y) is what transports, the mean of
        f_S is not the class share, and the drift says how much that matters.
        """
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
            remedy = (
                "If classes are causes of the stable features, use transport='likelihood'; see the check "
                "'kind of stability'."
            )
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


def check_prior_drift(inputs: CheckInputs) -> CheckResult:
    """Sketch the training rows and look at the new ones."""
    return BalanceSketch.of(inputs.labelled).check(inputs.fresh.stable)
