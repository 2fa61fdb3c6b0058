"""A Gaussian family with a dial for each assumption of the theory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from sfboost.datasets.contract import Dataset, Domain
from sfboost_lab.datasets.synthetic.finite import check_rows, dataset_of
from sfboost_lab.datasets.synthetic.settings import Dials, Setting, domain_rng, settings

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GaussianFamily:
    """Binary Y; X_S and X_U Gaussian given Y, with one covariance in both classes.

    Made by :func:`gaussian`; the dials of each domain are in ``settings``.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic import gaussian
    >>> gaussian().sample(3).domain("test-0.1").X.shape
    (3, 2)
    """

    settings: tuple[Setting, ...]
    n_stable: int
    n_unstable: int
    name: str = "gaussian"

    @property
    def groups(self) -> dict[str, list[int]]:
        """Columns by kind."""
        total = self.n_stable + self.n_unstable
        return {"stable": list(range(self.n_stable)), "unstable": list(range(self.n_stable, total))}

    def moments(self, domain: str) -> tuple[Floats, Floats, Floats]:
        """Return class means, the common covariance, and class probabilities of a domain."""
        dials = self._setting(domain).dials
        stable, unstable = self._directions()
        centre = dials["informativeness"] / 2 * stable + float(norm.ppf(dials["agreement"])) * unstable
        covariance = np.eye(len(centre)) + dials["violation"] * (
            np.outer(stable, unstable) + np.outer(unstable, stable)
        )
        leaked = np.eye(len(centre)) + dials["leak"] * np.outer(stable, unstable)
        means = np.stack([-centre, centre]) @ leaked.T
        return means, leaked @ covariance @ leaked.T, np.array([1 - dials["prior"], dials["prior"]])

    def sample(self, n_rows: int = 1024, random_state: int = 0) -> Dataset:
        """Draw a data set: the same seed gives the same rows, and a larger one begins with the smaller."""
        domains = tuple(self._draw(setting, n_rows, random_state) for setting in self.settings)
        return dataset_of(self.name, domains, self.settings, self.groups, (0, 1), "")

    def _draw(self, setting: Setting, n_rows: int, random_state: int) -> Domain:
        means, covariance, priors = self.moments(setting.name)
        uniform = domain_rng(random_state, setting.name, 0).random(check_rows(n_rows))
        y = (uniform < priors[1]).astype(np.int64)
        noise = domain_rng(random_state, setting.name, 1).standard_normal((n_rows, means.shape[1]))
        return Domain(
            setting.name, means[y] + noise @ np.linalg.cholesky(covariance).T, y, dict(setting.dials)
        )

    def _directions(self) -> tuple[Floats, Floats]:
        # The signal is spread evenly over the columns of its block.
        stable = np.r_[np.full(self.n_stable, self.n_stable**-0.5), np.zeros(self.n_unstable)]
        unstable = np.r_[np.zeros(self.n_stable), np.full(self.n_unstable, self.n_unstable**-0.5)]
        return stable, unstable

    def _setting(self, domain: str) -> Setting:
        for setting in self.settings:
            if setting.name == domain:
                return setting
        known = ", ".join(s.name for s in self.settings)
        raise KeyError(f"No domain {domain!r} in {self.name!r}; it has {known}.")


def gaussian(
    train: Sequence[Dials] = (0.95, 0.8),
    validate: Sequence[Dials] = (0.4,),
    test: Sequence[Dials] = (0.1,),
    *,
    informativeness: float = 2.0,
    violation: float = 0.0,
    leak: float = 0.0,
    prior: float = 0.5,
    n_stable: int = 1,
    n_unstable: int = 1,
) -> GaussianFamily:
    """Return the Gaussian family; every dial may also be set for one domain alone.

    Parameters
    ----------
    train, validate, test : sequence of float or mapping
        One entry per domain: its agreement, or a mapping of dials.
    informativeness : float
        Distance of the classes in X_S, in standard deviations; 0: X_S says nothing.
    violation : float in (-1, 1)
        Correlation of X_S and X_U within a class; 0: complementary.
    leak : float
        How much of X_U is mixed into X_S; 0: X_S is stable.
    prior : float
        Pr[Y = 1]; different values in different domains are label shift.
    n_stable, n_unstable : int
        Columns of each kind.

    Notes
    -----
    ``agreement`` is Pr[the sign of X_U along its signal = Y], so the class distance of X_U is
    2 Φ⁻¹(agreement). X_S is an effect of Y here, so label shift moves Pr[Y | X_S] as well.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic import gaussian
    >>> shifted = gaussian(test=[{"agreement": 0.2, "prior": 0.9, "leak": 0.5}], n_unstable=3)
    >>> shifted.sample(10).domain("test-0.2").X.shape
    (10, 4)
    """
    if min(n_stable, n_unstable) < 1:
        raise ValueError(f"Got n_stable={n_stable} and n_unstable={n_unstable}; each needs 1 or more.")
    defaults = {
        "agreement": 0.5,
        "informativeness": informativeness,
        "violation": violation,
        "leak": leak,
        "prior": prior,
    }
    made = settings(train, validate, test, defaults)
    for setting in made:
        if not 0 < setting.dials["agreement"] < 1 or not -1 < setting.dials["violation"] < 1:
            raise ValueError(
                f"Domain {setting.name!r} has agreement {setting.dials['agreement']} and violation "
                f"{setting.dials['violation']}; they need to lie strictly within (0, 1) and (-1, 1)."
            )
    return GaussianFamily(made, n_stable, n_unstable)
