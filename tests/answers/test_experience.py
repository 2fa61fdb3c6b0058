"""What own domains teach about f_S."""

import numpy as np
import pytest

from sfboost import StableFeatureBoosting


def _domain(turn, rng, n=300):
    """Columns 0 to 2 name the class moved on by `turn`; columns 3 to 5 the class itself, less clearly."""
    y = rng.integers(0, 3, n)
    stable, unstable = 3.0 * np.eye(3)[(y + turn) % 3], 2.0 * np.eye(3)[y]
    return np.hstack([stable, unstable]) + rng.normal(size=(n, 6)), y


def _fitted(turns, rng):
    X, y = (np.concatenate(part) for part in zip(*(_domain(turn, rng) for turn in turns), strict=True))
    model = StableFeatureBoosting([0, 1, 2], [3, 4, 5])
    return model.fit(X, y, sample_domain=np.repeat([f"e{k}" for k in range(len(turns))], 300))


@pytest.mark.filterwarnings("ignore::sfboost.AdaptationWarning")
def test_an_f_s_worse_than_a_guess_in_own_domains_teaches_nothing():
    """Columns called stable that are not: on own domains any other answer beats them."""
    rng = np.random.default_rng(0)
    model = _fitted((0, 1, 2), rng)
    X = _domain(1, rng)[0]
    adapted = model.adapt(X)
    assert adapted.change_.verdict == "cannot tell"
    assert "worse than a guess at random (Brier score" in adapted.reason_
    assert (adapted.decision_, adapted.weights_) == ("pooled", {"pooled": 1.0})
    several = model.adapt(np.tile(X, (2, 1)), sample_domain=np.repeat(["a", "b"], len(X)))
    assert {one.decision_ for one in several.values()} == {"pooled"}


def test_an_f_s_that_holds_is_not_doubted():
    rng = np.random.default_rng(0)
    model = _fitted((0, 0, 0), rng)
    assert model.training_.experience.doubt is None
    assert "guess" not in model.adapt(_domain(0, rng)[0]).reason_
