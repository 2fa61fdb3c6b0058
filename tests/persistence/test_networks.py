"""Trained networks: weights through safetensors, the architecture by name."""

import numpy as np
import pytest

import sfboost
from sfboost import SavedModelError, SavedModelWarning

torch = pytest.importorskip("torch", reason="needs the torch extra")

from joints import draw_anticausal  # noqa: E402
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
    model = SFBClassifier("small", plan=QUICK).set_params(**options)
    return model.fit(X, labels, sample_domain=domain)


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
        {"split": "shared"},
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
        assert ours.requires_grad == theirs.requires_grad
        assert ours.dtype == theirs.dtype
    assert to_bytes(loaded) == to_bytes(model)


def test_images_come_back(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2, 8, 8)), np.tile([0, 1, 2], 20)
    model = SFBClassifier("cnn", plan=QUICK).fit(X, y, sample_domain=np.repeat([1, 2], 30))
    np.testing.assert_array_equal(again(model, tmp_path).predict_proba(X), model.predict_proba(X))


def test_an_adapted_network_comes_back_and_adapts_again(tmp_path, network, new):
    adapted = network.adapt(new, answer="paper")
    loaded = again(adapted, tmp_path)
    assert loaded.decision_ == adapted.decision_
    np.testing.assert_array_equal(loaded.predict_proba(new), adapted.predict_proba(new))
    anew = loaded.model.adapt(new, answer="paper")
    np.testing.assert_array_equal(anew.predict_proba(new), adapted.predict_proba(new))


def test_a_leak_correction_comes_back(tmp_path, new):
    pytest.importorskip("skops", reason="needs the app extra")
    parts = [draw_anticausal(1000, agreement, seed) for seed, agreement in enumerate((0.8, 0.65))]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    model = fitted(
        (X, y, np.repeat([1, 2], 1000)),
        plan=Plan(steps=100, unstable_steps=100, learning_rate=0.01, validation_fraction=0.5),
    )
    adapted = model.correct_leak(new, n_cells=2, force=True)
    loaded = again(adapted, tmp_path)
    assert loaded.decision_ == "leak-corrected"
    np.testing.assert_array_equal(loaded.predict_proba(new), adapted.predict_proba(new))
    np.testing.assert_array_equal(loaded.confusion_, adapted.confusion_)


def test_a_loaded_network_can_be_trained_again(tmp_path, network, training, new):
    X, y, domain = training
    labels = np.array(["no", "yes"], dtype=object)[y]
    refitted = clone(again(network, tmp_path)).fit(X, labels, sample_domain=domain)
    np.testing.assert_array_equal(refitted.predict_proba(new), network.predict_proba(new))


def test_the_folder_of_checkpoints_stays_at_home(tmp_path, training):
    model = fitted(training, plan__checkpoint=tmp_path / "states")
    assert again(model, tmp_path).plan.checkpoint is None
    assert str(tmp_path).encode() not in (tmp_path / "model.sfb").read_bytes()


def test_an_unfitted_network_is_refused(tmp_path):
    with pytest.raises(NotFittedError, match="call fit before save"):
        SFBClassifier().save(tmp_path / "model.sfb")


# -- forged files -----------------------------------------------------------------------------------


def weights_of(forger):
    [name] = [name for name in forger.parts if name.endswith(".safetensors")]
    return name, load(forger.parts[name])


def refused(forger, match):
    with pytest.raises(SavedModelError, match=match):
        from_bytes(forger.write())


def test_weights_of_another_shape_type_or_name_are_refused(forger_of, network):
    for change, match in (
        (lambda w: w | {"stable_head.weight": torch.zeros(7, 7)}, "size mismatch"),
        (lambda w: w | {"stable_head.weight": w["stable_head.weight"].double()}, "not of type"),
        (lambda w: w | {"other": torch.zeros(1)}, "Unexpected key"),
        (lambda w: {k: v for k, v in w.items() if k != "stable_head.bias"}, "Missing key"),
    ):
        forger = forger_of(network)
        name, weights = weights_of(forger)
        forger.parts[name] = save(change(weights))
        refused(forger, match)


def test_weights_that_cannot_be_read_are_refused(forger_of, network):
    for content in (b"", b"\xff" * 8, (2**40).to_bytes(8, "little") + b"{}", b"cos\nsystem\n."):
        forger = forger_of(network)
        forger.parts[weights_of(forger)[0]] = content
        refused(forger, "weights cannot be read")


def test_a_claim_of_a_huge_network_takes_no_memory(forger_of, network):
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for attribute, claim in (
        ("row_shape_", {"tuple": [10**9]}),
        ("n_stable", 10**9),
        ("network", "mlp3"),
    ):
        forger = forger_of(network)
        forger.tree["state"][attribute] = claim
        refused(forger, "malformed")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


@pytest.mark.parametrize(
    ("attribute", "claim", "match"),
    [
        ("network", "../../weights", "No network '../../weights'. There are: linear"),
        ("network", 3, "No network 3. There are: linear"),
    ],
)
def test_what_a_network_cannot_be_is_refused(forger_of, network, attribute, claim, match):
    forger = forger_of(network)
    forger.tree["state"][attribute] = claim
    refused(forger, match)


def test_a_file_cannot_say_where_checkpoints_are_written(forger_of, network):
    forger = forger_of(network)
    forger.tree["state"]["plan"]["state"]["checkpoint"] = "/tmp/elsewhere"
    refused(forger, "a folder for checkpoints")


@pytest.mark.parametrize("device", ["nowhere", "meta", "cuda:77", "xpu:77"])
def test_a_device_that_is_not_here_is_replaced_and_told(forger_of, network, new, device):
    forger = forger_of(network)
    forger.tree["state"]["device"] = device
    with pytest.warns(SavedModelWarning, match="which is not here: it is loaded on the cpu"):
        loaded = from_bytes(forger.write())
    assert loaded.device == "cpu"
    np.testing.assert_array_equal(loaded.predict_proba(new), network.predict_proba(new))


def test_torch_load_is_never_called(tmp_path, network, monkeypatch):
    network.save(tmp_path / "model.sfb")

    def never(*args, **kwargs):
        raise AssertionError("torch.load was called")

    monkeypatch.setattr(torch, "load", never)
    sfboost.load(tmp_path / "model.sfb")
