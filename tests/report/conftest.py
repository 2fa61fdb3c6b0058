"""One adaptation to a hospital that reverses the heart rate, and its facts."""

from dataclasses import replace
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

if find_spec("pandas") and find_spec("jinja2"):
    import numpy as np
    from hospitals import draw, reversed_hospital, training

    from sfboost import StableFeatureBoosting
    from sfboost.report import describe_training, make_facts
    from sfboost.report.training import evaluation_rows
else:  # the [app] extra is not here
    collect_ignore_glob = ["test_*.py"]

STABLE, UNSTABLE = ["age", "chol"], ["heart_rate", "in_a"]


def features(rows):
    return rows.fillna({"chol": 220.0}).assign(in_a=1.0 * (rows["ward"] == "A"))[STABLE + UNSTABLE]


@pytest.fixture(scope="session")
def case():
    rows, new = training(500), reversed_hospital()
    X, y, domain = features(rows), rows["sick"].to_numpy(str), rows["hospital"].to_numpy(object)
    model = StableFeatureBoosting(stable_features=STABLE, unstable_features=UNSTABLE)
    evaluation = evaluation_rows(model.evaluate(X, y, domain))
    described = replace(describe_training(model, X, y, domain), evaluation=evaluation)
    adapted = model.adapt(features(new))
    facts = make_facts(
        adapted,
        described,
        features(new),
        title="West <script>alert(1)</script>",
        y=new["sick"].to_numpy(object),
        cells=new[["patient", "heart_rate", "ward"]].to_dict("records"),
        remarks=["A remark & more."],
    )
    return SimpleNamespace(
        model=model, training=described, adapted=adapted, facts=facts, X=X, y=y, domain=domain, new=new
    )


@pytest.fixture(scope="session")
def unshifted(case):
    """Facts of a hospital like those of training: source domains say there how good an answer is."""
    new = draw("west", 800, np.random.default_rng(2), 0.8)
    X, y = features(new), new["sick"].to_numpy(object)
    return make_facts(case.model.adapt(X), case.training, X, title="West", y=y)


@pytest.fixture(scope="session")
def new_features(case):
    return features(case.new)
