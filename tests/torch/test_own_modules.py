"""A network, a penalty and a view of one's own: trained, watched, saved and loaded."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from torch import nn  # noqa: E402

import sfboost  # noqa: E402
import sfboost.torch  # noqa: E402
from sfboost import SavedModelError  # noqa: E402
from sfboost.torch import Plan, SFBClassifier, search  # noqa: E402
from sfboost.torch.candidates import Candidate  # noqa: E402
from sfboost.torch.networks import GivenTrunk  # noqa: E402
from sfboost.torch.split_network import SplitNetwork  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:In 1 starts:UserWarning", "ignore::sfboost.AdaptationWarning")
QUICK = Plan(steps=4, unstable_steps=3, precision="float32", max_restarts=0)


class Trunk(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.layer = nn.Linear(3, width)

    def forward(self, x):
        return torch.relu(self.layer(x))


class EqualRisks(nn.Module):
    def forward(self, domains, parameters):
        risks = torch.stack([domain.risk for domain in domains])
        return risks.max() - risks.min()


class Forbidden(Trunk):
    """Not what was trained."""

    def __init__(self):
        super().__init__(width=6)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y, domain = rng.integers(0, 2, 200), np.repeat(["a", "b"], 100)
    return (y[:, None] + rng.normal(size=(200, 3))).astype(np.float32), y, domain


def fitted(rows, trunk=None, **plan):
    X, y, domain = rows
    model = SFBClassifier(trunk or Trunk(), penalty=EqualRisks(), plan=QUICK.changed(**plan))
    return model.fit(X, y, sample_domain=domain)


@pytest.mark.parametrize("plan", [{}, {"freeze_trunk": True}], ids=str)
def test_it_comes_back_with_the_class_that_the_caller_gives(rows, tmp_path, plan):
    X = rows[0]
    model = fitted(rows, **plan)
    model.save(tmp_path / "own.sfb")
    given = Trunk()
    before = given.layer.weight.detach().clone()
    loaded = sfboost.torch.load(tmp_path / "own.sfb", network=given)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert torch.equal(given.layer.weight, before)
    model.adapt(X).save(tmp_path / "adapted.sfb")
    adapted = sfboost.torch.load(tmp_path / "adapted.sfb", network=Trunk())
    np.testing.assert_array_equal(adapted.predict_proba(X), model.adapt(X).predict_proba(X))


def first_column(x):
    return x * torch.tensor([1.0, 0.0, 0.0])


@pytest.mark.parametrize("view", [first_column, nn.Tanh()], ids=["function", "module"])
def test_a_searched_model_of_a_module_and_a_view_of_ones_own_comes_back(rows, tmp_path, monkeypatch, view):
    monkeypatch.setattr(search, "_PLAN", search._PLAN.changed(steps=10, unstable_steps=1, min_gain=-9.0))
    monkeypatch.setattr(search, "first_candidates", lambda names: [Candidate(view=names[1])])
    X, y, domain = (part[70:130] for part in rows)
    model = SFBClassifier(Trunk(), views=[view], plan=Plan(budget=1)).fit(X, y, sample_domain=domain)
    model.save(tmp_path / "own.sfb")
    loaded = sfboost.torch.load(tmp_path / "own.sfb", network=Trunk(), views=[view])
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    changed = X * np.float32([1, 5, 5])
    same = np.array_equal(model.predict_stable_proba(changed), model.predict_stable_proba(X))
    assert same == (view is first_column)  # f_S sees what the view shows
    with pytest.raises(SavedModelError, match=r"by a view of yours.*views="):
        sfboost.torch.load(tmp_path / "own.sfb", network=Trunk())


@pytest.mark.parametrize(
    ("views", "error", "message"),
    [
        (["gray"], ValueError, "No view 'gray'"),
        ("grey", TypeError, "must be a list"),
        ([3], TypeError, "got int"),
        (["grey"], ValueError, "needs pictures"),
    ],
)
def test_what_no_view_can_be_is_told(rows, views, error, message):
    X, y, domain = rows
    with pytest.raises(error, match=message):
        SFBClassifier(views=views).fit(X, y, sample_domain=domain)


def test_nothing_of_the_class_is_looked_up(rows, tmp_path):
    fitted(rows).save(tmp_path / "own.sfb")
    with pytest.raises(SavedModelError, match=r"sfboost\.torch\.load"):
        sfboost.load(tmp_path / "own.sfb")
    with pytest.raises(SavedModelError):
        sfboost.torch.load(tmp_path / "own.sfb", network=Forbidden())


def test_a_restart_begins_with_the_weights_that_the_module_came_with():
    trunk = Trunk()
    network = SplitNetwork(GivenTrunk(trunk), n_features=5, n_classes=2, n_domains=2)
    head = network.stable_head.weight.detach().clone()
    with torch.no_grad():
        network.trunk.module.layer.weight.add_(1.0)
    network.reset("stable", 7)
    assert torch.equal(network.trunk.module.layer.weight, trunk.layer.weight)
    assert not torch.equal(network.stable_head.weight, head)


def test_a_callback_gets_every_line_of_the_history(rows):
    X, y, domain = rows
    seen = []
    model = SFBClassifier(Trunk(), plan=QUICK).fit(X, y, sample_domain=domain, callback=seen.append)
    assert seen == model.history_


def test_a_warning_points_at_the_line_that_called_fit(rows):
    X, _, domain = rows
    noise = np.random.default_rng(1).integers(0, 2, len(X))
    with pytest.warns(UserWarning, match="In 1 starts") as caught:
        SFBClassifier(Trunk(), plan=QUICK.changed(min_gain=0.9)).fit(X, noise, sample_domain=domain)
    assert {one.filename for one in caught if "In 1 starts" in str(one.message)} == {__file__}
