"""Situations that the default answer was not made for: nothing is claimed as it is, and little is lost."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sfboost import StableFeatureBoosting

pytestmark = pytest.mark.long
_WORLDS = 20
#: Accuracy that may be lost in the mean: half a point is wanted; where more is, it is missed by so much.
_MAY_LOSE = {"30 target rows": 0.05}


@dataclass(frozen=True)
class World:
    """How rows are drawn: Gaussian columns whose class means vary a little from domain to domain."""

    n_classes: int = 2
    n_domains: int = 4
    n_rows: int = 400
    n_new: int = 400
    n_stable: int = 3
    n_unstable: int = 4
    missing: float = 0.0
    one_hot: bool = False
    series: int = 1
    absent: bool = False

    def draw(self, seed: int) -> tuple[Any, ...]:
        """Source rows, labels, domains; rows of a target domain as it is, and with X_U permuted by class."""
        rng = np.random.default_rng(seed)
        size = self.n_stable + self.n_unstable
        means = rng.normal(size=(self.n_classes, size)) * 1.5 / np.sqrt(min(size, 20))
        parts = [self._domain(rng, means, self.n_rows) for _ in range(self.n_domains)]
        X, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        domain = np.repeat([f"d{k}" for k in range(self.n_domains)], self.n_rows)
        turned = means.copy()
        turned[:, self.n_stable :] = means[np.roll(np.arange(self.n_classes), 1), self.n_stable :]
        state = rng.bit_generator.state
        made = []
        for at in (means, turned):
            rng.bit_generator.state = state
            made.append(self._domain(rng, at, self.n_new, absent=self.absent))
        return X, y, domain, *made

    def _domain(self, rng: Any, means: Any, n_rows: int, absent: bool = False) -> tuple[Any, Any]:
        y = rng.integers(0, self.n_classes - absent, n_rows)
        y = np.repeat(y[:: self.series], self.series)[:n_rows]
        own = means * rng.normal(1.0, 0.1, size=means.shape)
        noise = rng.normal(size=(n_rows, means.shape[1]))
        if self.series > 1:  # half of the noise is the series' own
            shared = np.repeat(noise[:: self.series], self.series, axis=0)[:n_rows]
            noise = (noise + shared) / np.sqrt(2.0)
        X = own[y] + noise
        if self.missing:  # filled in as an imputer does
            X = np.where(rng.random(X.shape) < self.missing, means.mean(axis=0), X)
        if self.one_hot:
            codes = np.digitize(X[:, self.n_stable :], [-0.7, 0.0, 0.7])
            X = np.hstack([X[:, : self.n_stable], *np.eye(4)[codes].transpose(1, 0, 2)])
        return X, y


SITUATIONS = {
    "usual": World(),
    "two source domains": World(n_domains=2),
    "one source domain": World(n_domains=1, n_rows=1000),
    "one column a side": World(n_stable=1, n_unstable=1),
    "ten classes": World(n_classes=10, n_stable=8, n_unstable=8, n_rows=1000, n_new=1000),
    "thirty percent missing": World(missing=0.3),
    "one-hot groups": World(one_hot=True),
    "500 columns": World(n_stable=100, n_unstable=400, n_rows=600),
    "30 target rows": World(n_new=30),
    "a class absent": World(n_classes=3, absent=True),
    "rows in series": World(series=5),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_nothing_is_claimed_where_nothing_moved_and_little_is_lost_where_x_u_did(situation):
    world, claims, gains = SITUATIONS[situation], [], {"as is": [], "turned": []}
    n_stable, worlds = world.n_stable, _WORLDS if world.n_stable < 50 else 10
    for seed in range(worlds):
        X, y, domain, as_is, turned = world.draw(seed)
        parts = list(range(n_stable)), list(range(n_stable, X.shape[1]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = StableFeatureBoosting(*parts, learner=None).fit(X, y, sample_domain=domain)
            for name, (X_new, y_new) in (("as is", as_is), ("turned", turned)):
                adapted = model.adapt(X_new)
                gains[name].append(adapted.score(X_new, y_new) - model.score(X_new, y_new))
                if name == "as is":
                    moved = adapted.shift_.verdict
                    claims.append(
                        moved in ("unstable", "stable") or (moved == "class shares" and not world.absent)
                    )
    told = {name: f"{100 * np.mean(gain):+.1f} points" for name, gain in gains.items()}
    print(f"{situation}: claims {100 * np.mean(claims):.0f} %, {told}")
    # At a level of one in twenty more than four of 20 claims are a chance of .3 %.
    assert np.mean(claims) <= 0.2, told
    least = -_MAY_LOSE.get(situation, 0.005)
    assert all(np.mean(gain) >= least for gain in gains.values()), told
