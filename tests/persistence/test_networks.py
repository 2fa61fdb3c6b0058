"""Trained networks: weights through safetensors, the architecture by name."""

import resource

import numpy as np
import pytest

import sfboost
from sfboost import SavedModelError, SavedModelWarning, Settings

torch = pytest.importorskip("torch", reason="needs the torch extra")

from safetensors.torch import load, save  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402

from sfboost.persistence.saving import from_bytes, to_bytes  # noqa: E402
from sfboost.torch import Plan, SFBClassifier  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:In 1 starts:UserWarning", "ignore::sfboost.AdaptationRefused")
QUICK = Plan(steps=5, unstable_steps=5, precision="float32", max_restarts=0)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def fitted(training, **options):
    X, y, domain = training
    labels = np.array(["no", "yes"], dtype=object)[y]
    return SFBClassifier("small", plan=QUICK).set_params(**options).fit(X, labels, sample_domain=domain)


@pytest.fixture(scope="module")
def network(training):
    return fitted(training)


def again(model, path):
    model.save(path / "model.sfb")
    return sfboost.load(path / "model.sfb")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"split": "shared", "n_stable": 3, "n_unstable": 2},
        {"plan__freeze_trunk": True},
        {"plan__precision": "float64", "plan__dropout": 0.2, "penalty": "vrex"},
    ],
    ids=str,
)
def test_a_network_comes_back_bit_for_bit(tmp_path, training, new, options):
    model = fitted(training, **options)
    state = torch.random.get_rng_state()
    loaded = again(model, tmp_path)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert loaded.get_params() == model.get_params()
    assert loaded.history_ == model.history_
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    for ours, theirs in zip(loaded.transform(new), model.transform(new), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(loaded.network_.parameters(), model.network_.parameters(), strict=True):
        assert (ours.requires_grad, ours.dtype) == (theirs.requires_grad, theirs.dtype)
    assert to_bytes(loaded) == to_bytes(model)


def test_an_adapted_network_comes_back_adapts_again_and_is_trained_again(tmp_path, network, training, new):
    X, y, domain = training
    adapted = network.adapt(new, settings=Settings("paper"))
    loaded = again(adapted, tmp_path)
    assert loaded.decision_ == adapted.decision_
    anew = loaded.model.adapt(new, settings=Settings("paper"))
    for one in (loaded, anew):
        np.testing.assert_array_equal(one.predict_proba(new), adapted.predict_proba(new))
    labels = np.array(["no", "yes"], dtype=object)[y]
    refitted = clone(loaded.model).fit(X, labels, sample_domain=domain)
    np.testing.assert_array_equal(refitted.predict_proba(new), network.predict_proba(new))


def test_what_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError, match="call fit before save"):
        SFBClassifier().save(tmp_path / "other.sfb")


# -- forged files -----------------------------------------------------------------------------------------


def refused(forger, match):
    with pytest.raises(SavedModelError, match=match):
        from_bytes(forger.write())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda w: w | {"stable_head.weight": torch.zeros(7, 7)}, "size mismatch"),
        (lambda w: w | {"stable_head.weight": w["stable_head.weight"].double()}, "not of type"),
        (lambda w: w | {"other": torch.zeros(1)}, "Unexpected key"),
        (lambda w: {k: v for k, v in w.items() if k != "stable_head.bias"}, "Missing key"),
        (None, "weights cannot be read"),
    ],
)
def test_weights_of_another_shape_type_or_name_are_refused(forger_of, network, change, match):
    forger = forger_of(network)
    [name] = [name for name in forger.parts if name.endswith(".safetensors")]
    weights = forger.parts[name]
    forger.parts[name] = b"cos\nsystem\n." if change is None else save(change(load(weights)))
    refused(forger, match)


@pytest.mark.parametrize(
    ("attribute", "claim", "match"),
    [
        ("network", "../../weights", "No network '../../weights'. There are: linear"),
        ("network", 3, "No network 3. There are: linear"),
        ("network", "mlp3", "malformed"),
        ("row_shape_", {"tuple": [10**9]}, "malformed"),
        ("n_stable", 10**9, "malformed"),
    ],
)
def test_what_a_network_cannot_be_is_refused_and_takes_no_memory(forger_of, network, attribute, claim, match):
    before, forger = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, forger_of(network)
    forger.tree["state"][attribute] = claim
    refused(forger, match)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


@pytest.mark.parametrize("device", ["nowhere", "meta", "cuda:77", "xpu:77"])
def test_a_device_that_is_not_here_is_replaced_and_told(forger_of, network, new, device):
    forger = forger_of(network)
    forger.tree["state"]["device"] = device
    with pytest.warns(SavedModelWarning, match="which is not here: it is loaded on the cpu"):
        loaded = from_bytes(forger.write())
    assert loaded.device == "cpu"
    np.testing.assert_array_equal(loaded.predict_proba(new), network.predict_proba(new))


def test_torch_load_is_never_called(tmp_path, network, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("torch.load was called")

    monkeypatch.setattr(torch, "load", never)
    again(network, tmp_path)
