"""SFBClassifier: scikit-learn's contract, what it learns, and every refusal."""

import copy
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from joints import anticausal_hospitals, draw_anticausal  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from torch import nn  # noqa: E402

from sfboost import Settings  # noqa: E402
from sfboost.torch import Plan, SFBClassifier, TrainingDivergedError  # noqa: E402
from sfboost.torch.networks import MLP  # noqa: E402

FAST = Plan(steps=5, unstable_steps=5, min_gain=-9.0)


def fast(**options):
    """A small network that is trained for a moment; options of the plan are plan__steps and so on."""
    return SFBClassifier("small", plan=FAST).set_params(**options)


def _training(n=200, agreements=(0.95, 0.7)):
    return anticausal_hospitals(n, agreements)


@pytest.fixture(scope="module")
def learned():
    X, y, d = _training(8000, agreements=(0.9, 0.7))
    plan = Plan(learning_rate=0.01, steps=300, unstable_steps=200, batch_size=256, validation_fraction=0.5)
    model = SFBClassifier(network="small", n_stable=1, plan=plan)
    return model.fit(X, y, sample_domain=d)


def test_the_stable_predictor_is_right_three_times_in_four_whatever_the_agreement(learned):
    for agreement in (0.95, 0.5, 0.1):
        X, y = draw_anticausal(4000, agreement, 7)
        assert np.mean(learned.predict_stable_proba(X).argmax(axis=1) == y) == pytest.approx(0.75, abs=0.03)


def test_adaptation_without_labels_reaches_the_ceiling_where_the_feature_is_reversed(learned):
    X, y = draw_anticausal(4000, 0.1, 8)
    assert learned.adapt(X).score(X, y) > 0.87


def test_adapting_and_predicting_send_each_row_through_the_network_once(learned, monkeypatch):
    X, _ = draw_anticausal(1000, 0.1, 8)
    passes = []
    outputs = type(learned)._outputs
    monkeypatch.setattr(
        type(learned), "_outputs", lambda self, rows: passes.append(len(rows)) or outputs(self, rows)
    )
    learned.adapt(X).predict_proba(X[:10])
    assert passes == [1000, 10]


def test_adapting_returns_a_new_object_and_leaves_the_model_as_it_was(learned):
    X, _ = draw_anticausal(500, 0.1, 9)
    before = copy.deepcopy(learned.network_.state_dict())
    proba = learned.predict_proba(X)
    first, second = learned.adapt(X), learned.adapt(-X)
    assert first is not second
    assert all(
        torch.equal(a, b)
        for a, b in zip(before.values(), learned.network_.state_dict().values(), strict=True)
    )
    np.testing.assert_array_equal(learned.predict_proba(X), proba)


def test_transform_gives_the_two_feature_sets_that_the_heads_read(learned):
    X, _ = draw_anticausal(50, 0.5, 1)
    stable, unstable = learned.transform(X)
    assert stable.shape == unstable.shape == (50, 1)
    log_proba, again = learned.stable_and_unstable(X)
    np.testing.assert_array_equal(unstable, again)
    logits = (
        learned.network_.stable_logits(torch.tensor(stable, dtype=torch.float32)).detach().double().numpy()
    )
    np.testing.assert_allclose(log_proba, learned.temperature_.apply(logits), atol=1e-6)


@pytest.mark.filterwarnings("ignore::sfboost.AdaptationWarning")
def test_string_labels_data_frames_and_tensors_give_the_same_model():
    pd = pytest.importorskip("pandas", reason="needs the app extra")
    X, y, d = _training()
    names = np.array(["no", "yes"])[y]
    one = fast().fit(X, names, sample_domain=d)
    two = fast().fit(pd.DataFrame(X, columns=["a", "b"]), pd.Series(names), sample_domain=pd.Series(d))
    three = fast().fit(torch.tensor(X), torch.tensor(y), sample_domain=d)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    np.testing.assert_array_equal(one.predict_proba(X), three.predict_proba(X))
    assert set(one.predict(X)) <= {"no", "yes"}
    assert one.adapt(X).predict(X).dtype.kind == "U"


@pytest.mark.filterwarnings("ignore::sfboost.AdaptationWarning")
def test_inputs_are_never_written_to():
    X, y, d = _training()
    for array in (X, y, d):
        array.setflags(write=False)
    fast().fit(X, y, sample_domain=d).adapt(X)


def test_a_frozen_network_keeps_its_weights():
    trunk = MLP(2, (8,))
    before = copy.deepcopy(trunk.state_dict())
    X, y, d = _training()
    model = fast(network=trunk, plan__freeze_trunk=True).fit(X, y, sample_domain=d)
    for state in (trunk.state_dict(), model.backbone_.state_dict()):
        assert all(torch.equal(a, b) for a, b in zip(before.values(), state.values(), strict=True))
    assert model.history_[-1]["stage"] == "unstable"


def test_a_users_module_is_copied_and_the_same_seed_gives_the_same_result():
    trunk = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.3))
    before = copy.deepcopy(trunk.state_dict())
    X, y, d = _training()
    models = [fast(network=trunk).fit(X, y, sample_domain=d) for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(before.values(), trunk.state_dict().values(), strict=True))
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))


def test_the_shared_split_cuts_the_last_hidden_layer_in_two():
    X, y, d = _training()
    model = fast(split="shared").fit(X, y, sample_domain=d)
    assert [part.shape[1] for part in model.transform(X)] == [4, 4]
    assert {row["stage"] for row in model.history_} == {"joint"}


def test_features_that_never_help_are_reported_after_the_last_restart():
    X, y, d = _training()
    model = fast(plan__min_gain=0.9, plan__max_restarts=2)
    with pytest.warns(UserWarning, match="3 starts"):
        model.fit(X, y, sample_domain=d)
    assert model.restarts_ == 2


def test_calling_out_of_order_names_the_missing_fit():
    with pytest.raises(NotFittedError, match="fit"):
        SFBClassifier().predict([[0.0]])
    with pytest.raises(NotFittedError, match="fit"):
        SFBClassifier().adapt([[0.0]])


X0, Y0, D0 = _training(20)
BAD = [
    ({}, (X0, Y0, None), "two or more domains"),
    ({}, (X0, Y0, np.where(Y0 == 1, "only", D0)), "has one class only"),
    ({}, (X0, np.zeros(40), D0), "one class only"),
    ({"plan__batch_size": 1}, (X0, Y0, D0), "smaller than the number of classes"),
    ({"network": nn.Linear(3, 4)}, (X0, Y0, D0), "does not take rows of shape"),
    ({"network": nn.Sequential(nn.Linear(2, 4), nn.Unflatten(1, (2, 2)))}, (X0, Y0, D0), "must map 2 rows"),
    ({"network": "vgg"}, (X0, Y0, D0), "No network 'vgg'"),
    ({"network": "efficientnet-lite0"}, (X0, Y0, D0), "channels, height, width"),
    ({"penalty": "magic"}, (X0, Y0, D0), "No stability penalty 'magic'"),
    ({"independence": "magic"}, (X0, Y0, D0), "No independence penalty 'magic'"),
    ({"split": "halves"}, (X0, Y0, D0), "'alternating' or 'shared'"),
    ({"plan__precision": "float8"}, (X0, Y0, D0), "No precision 'float8'"),
    ({"plan__budget": "90 s"}, (X0, Y0, D0), "budget must be a number of candidates"),
    ({"plan__budget": -1}, (X0, Y0, D0), "budget must be a number of candidates"),
    ({"plan__validation_fraction": 1.5}, (X0, Y0, D0), "validation_fraction"),
    ({}, (np.where(X0 > 0, np.nan, X0), Y0, D0), "NaN"),
    ({}, (X0[:-1], Y0, D0), "same number of rows"),
    ({}, (X0, None, D0), "needs labels"),
]


@pytest.mark.parametrize(("options", "data", "message"), BAD, ids=[m for *_, m in BAD])
def test_bad_input_is_answered_with_a_sentence(options, data, message):
    X, y, d = data
    with pytest.raises(ValueError, match=message):
        fast(**options).fit(X, y, sample_domain=d)


def test_a_loss_that_explodes_stops_with_step_and_part():
    class Explodes(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, domains, parameters=()):
            self.calls += 1
            return domains[0].risk * (float("nan") if self.calls == 4 else 1.0)

    model = fast(penalty=Explodes())
    with pytest.raises(TrainingDivergedError, match=r"step 4 of stage 'stable'.*: penalty"):
        model.fit(X0, Y0, sample_domain=D0)


def test_settings_and_transport_are_those_of_the_model_unless_told_otherwise(learned):
    X, _ = draw_anticausal(2000, 0.1, 8)
    own = copy.copy(learned).set_params(settings=Settings(correction="likelihood", l2=0.1))
    used = own.adapt(X).adaptation.settings
    assert (used.correction, used.l2, used.transport) == ("likelihood", 0.1, "posterior")
    told = own.adapt(X, settings=Settings("paper")).adaptation.settings
    assert told.correction == "posthoc"
    assert learned.adapt(X).adaptation.settings.correction == "posthoc"
    shifted = copy.copy(learned).set_params(transport="likelihood").adapt(X)
    assert shifted.adaptation.settings.transport == "likelihood"
    assert clone(own).set_params(settings__l2=0.2).settings.l2 == 0.2


@pytest.mark.parametrize(("options", "message"), [
    ({"transport": "labels"}, "transport='labels' is not known"),
    ({"settings": Settings(correction="posthoc"), "transport": "likelihood"}, "needs correction="),
])  # fmt: skip
def test_settings_that_cannot_be_are_refused_before_training(options, message):
    model = fast(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X0, Y0, sample_domain=D0)
    assert not hasattr(model, "network_")


def test_the_sample_domain_can_be_routed_by_scikit_learn():
    from sklearn import config_context
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    with config_context(enable_metadata_routing=True), warnings.catch_warnings():
        model = fast().set_fit_request(sample_domain=True, validation=False)
        pipe = make_pipeline(StandardScaler(), model).fit(X0, Y0, sample_domain=D0)
        assert pipe.predict(X0).shape == (40,)


def test_a_learned_model_is_diagnosed_on_the_rows_that_it_held_out(learned):
    X, _ = draw_anticausal(2000, 0.1, 9)
    found = learned.diagnose(X_new=X)
    assert found["stability"].verdict == "holds"
    assert found["informativeness"].verdict == "holds"
    (meaning,) = found.meanings
    assert (meaning.name, meaning.verdict) == ("Φ_U[0]", "changed")
    alone = {result.check for result in learned.diagnose()}
    assert alone < {result.check for result in found}
