"""The ways of docs/serving.md, on loopback: a table goes in as JSON, the model's own predictions come out."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="tables are an extra: pip install 'sfboost[app]'")

import pandas as pd
from hospitals import reversed_hospital, training
from sklearn.ensemble import RandomForestClassifier

import sfboost

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore:Missing in")]
PAGE = Path(__file__).parents[1] / "docs" / "serving.md"
COLUMNS = ["age", "chol", "sex", "heart_rate", "ward"]


@pytest.fixture(scope="module")
def adapted():
    rows = training()
    model = sfboost.StableFeatureBoosting(["age", "chol", "sex"], ["heart_rate", "ward"])
    model.fit(rows[COLUMNS], rows["sick"], sample_domain=rows["hospital"])
    return model.adapt(reversed_hospital()[COLUMNS])


@pytest.fixture(scope="module")
def table():
    rows = reversed_hospital(20, seed=5)[COLUMNS]
    assert rows["sex"].dtype.kind not in "if", "text goes in as it is"
    return rows.assign(chol=rows["chol"].where(np.arange(20) > 2))  # and gaps


def block_with(words):
    """The block of the page that holds these words."""
    found = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    (block,) = [block for block in found if words in block]
    return block


def as_json(table):
    """Rows as a client sends them: null is a gap."""
    return json.loads(table.to_json(orient="records"))


@contextmanager
def serving(folder, *command, ready):
    """A server on a free port of this machine; gone at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # MLflow starts uvicorn by its name, also where the environment is not activated.
    paths = {
        "PYTHONPATH": [str(folder), *sys.path],
        "PATH": [Path(sys.executable).parent, os.environ["PATH"]],
    }
    environment = os.environ | {name: os.pathsep.join(map(str, parts)) for name, parts in paths.items()}
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", *command, "--host", "127.0.0.1", "--port", str(port)],
            **{"cwd": folder, "env": environment, "stdout": log, "stderr": log, "start_new_session": True},
        )
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{ready}", timeout=5).read()
                break
            except OSError:
                assert server.poll() is None, (folder / "server.log").read_text()
                assert time.monotonic() < deadline, (folder / "server.log").read_text()
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(30)


def post(url, what):
    request = urllib.request.Request(url, json.dumps(what).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_the_service_of_the_page_answers_as_the_model(adapted, table, tmp_path):
    pytest.importorskip("fastapi", reason="no part of any extra: pip install fastapi uvicorn")
    pytest.importorskip("uvicorn", reason="no part of any extra: pip install fastapi uvicorn")
    (tmp_path / "service.py").write_text(block_with("FastAPI()"), encoding="utf-8")
    adapted.save(tmp_path / "adapted.sfb")
    with serving(tmp_path, "uvicorn", "service:app", ready="/about") as url:
        said = pd.DataFrame(post(f"{url}/predict", as_json(table)))
        np.testing.assert_allclose(said[["no", "yes"]], adapted.predict_proba(table), rtol=1e-12)
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(f"{url}/predict", as_json(table.drop(columns="age")))
        assert refused.value.code == 422
        assert "X lacks ['age']" in json.load(refused.value)["detail"]
        about = json.load(urllib.request.urlopen(f"{url}/about"))
        assert about == {"decision": adapted.decision_, "reason": str(adapted.reason_)}


@pytest.mark.filterwarnings("ignore")  # MLflow's libraries warn of each other
def test_mlflow_keeps_the_file_serves_it_and_gives_the_model_back(adapted, table, tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="an extra: pip install 'sfboost[mlflow]'")
    monkeypatch.chdir(tmp_path)
    names = {"adapted": adapted, "X_new": table}
    exec(block_with("mlflow.log("), names)
    expected, answer = adapted.predict_proba(table), ["answer_no", "answer_yes"]
    np.testing.assert_array_equal(names["again"].predict_proba(table), expected)
    np.testing.assert_array_equal(names["table"][answer], expected)
    assert names["table"]["prediction"].tolist() == adapted.predict(table).tolist()
    kept = [path for path in tmp_path.rglob("*") if path.suffix in (".sfb", ".pkl", ".pickle")]
    assert [path.name for path in kept] == ["model.sfb"]
    command = ("mlflow", "models", "serve", "-m", str(kept[0].parents[1]), "--env-manager", "local")
    with serving(tmp_path, *command, ready="/ping") as url:
        served = pd.DataFrame(
            post(f"{url}/invocations", {"dataframe_records": as_json(table)})["predictions"]
        )
    np.testing.assert_allclose(served[answer], expected, rtol=1e-12)


def test_mlflow_gets_no_model_that_would_have_to_be_trusted():
    pytest.importorskip("mlflow", reason="an extra: pip install 'sfboost[mlflow]'")
    import sfboost.mlflow

    rows = training()
    forest = RandomForestClassifier(3, random_state=0)
    model = sfboost.StableFeatureBoosting(["age"], ["ward"], stable=forest)
    model.fit(rows[["age", "ward"]].assign(ward=(rows["ward"] == "A") * 1.0), rows["sick"], rows["hospital"])
    with pytest.raises(sfboost.SavedModelError, match="cannot be saved"):
        sfboost.mlflow.log(model)
