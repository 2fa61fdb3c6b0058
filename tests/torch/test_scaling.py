"""Rows come in any numbers: pictures of 0 to 255, columns in thousands."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

import sfboost  # noqa: E402
from sfboost.torch import Plan, SFBClassifier  # noqa: E402
from sfboost.torch.rows import Scaling  # noqa: E402

FAST = Plan(steps=60, unstable_steps=40, learning_rate=0.01, batch_size=128, precision="float32")


def _rows(n=400, seed=0):
    """Two domains of pictures; the shape says the class three times in four, the colour more often."""
    rng = np.random.default_rng(seed)
    y, domain = rng.integers(0, 2, n), np.repeat(["a", "b"], n // 2)
    agree = np.c_[np.full(n, 0.75), np.where(domain == "a", 0.95, 0.8)]
    shape, colour = np.where(rng.random((n, 2)) < agree, y[:, None], 1 - y[:, None]).T
    X = rng.uniform(0, 0.3, (n, 2, 4, 4))
    for i in range(n):
        X[i, colour[i], :, 2 * shape[i] : 2 * shape[i] + 2] = 1.0
    return X, y, domain


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_pictures_of_0_to_255_are_learned_from_as_pictures_of_usual_numbers(kind):
    X, y, domain = _rows()
    large = (255 * X).astype(kind)
    scaling = Scaling.of(torch.from_numpy(large.astype(np.float32)))
    usual = scaling.apply(torch.from_numpy(large.astype(np.float32))).numpy()
    assert 0.9 < np.sqrt((usual**2).mean()) < 1.1
    one, two = (SFBClassifier("small", plan=FAST).fit(Z, y, sample_domain=domain) for Z in (large, usual))
    assert two.scaling_ is None
    # A tenth of the rows is held out before the scale is found.
    np.testing.assert_allclose(one.predict_stable_proba(large), two.predict_stable_proba(usual), atol=0.01)


@pytest.mark.long
def test_the_search_learns_from_large_numbers_too():
    X, y, domain = _rows(800)
    model = SFBClassifier(plan=Plan(budget=1)).fit((255 * X).astype(np.uint8), y, sample_domain=domain)
    assert model.scaling_ is not None
    assert model.score((255 * X).astype(np.uint8), y) > 0.7


def test_columns_that_are_far_off_are_put_right_and_others_left_alone():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(np.c_[rng.normal(2015, 5, 500), rng.normal(size=500), np.full(500, 300.0)])
    scaling = Scaling.of(x)
    made = scaling.apply(x)
    assert abs(float(made[:, 0].mean())) < 1e-6
    assert float(made[:, 0].std()) == pytest.approx(1.0, abs=0.01)
    assert torch.equal(made[:, 1], x[:, 1])
    assert torch.equal(made[:, 2], torch.zeros_like(made[:, 2]))
    assert torch.isfinite(made).all()
    assert made.dtype == x.dtype


def test_it_is_in_the_file_of_a_model(tmp_path):
    X, y, domain = _rows()
    model = SFBClassifier("small", plan=FAST).fit(255 * X, y, sample_domain=domain)
    model.save(tmp_path / "model.sfb")
    again = sfboost.load(tmp_path / "model.sfb")
    np.testing.assert_array_equal(again.predict_proba(255 * X), model.predict_proba(255 * X))


def test_a_module_of_ones_own_gets_rows_as_they_are():
    X, y, domain = _rows()
    seen = []

    class Trunk(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(32, 4))

        def forward(self, x):
            seen.append(float(x.max()))
            return self.layers(x / 255)

    model = SFBClassifier(Trunk(), plan=FAST).fit(255 * X, y, sample_domain=domain)
    assert model.scaling_ is None
    assert max(seen) == 255.0


def test_rows_of_another_shape_are_refused():
    X, y, domain = _rows()
    model = SFBClassifier("small", plan=FAST).fit(X, y, sample_domain=domain)
    with pytest.raises(
        ValueError, match=r"shape \(32,\), and the model was fitted to rows of shape \(2, 4, 4\)"
    ):
        model.predict(X.reshape(len(X), -1))
