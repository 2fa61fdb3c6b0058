"""`sfboost run` where NEW holds many domains."""

import base64
import hashlib
import re

import numpy as np
import pandas as pd
import pytest
from hospitals import ROLES, draw, training

from sfboost.cli.outcome import _words_of_many
from sfboost.report.domains import DomainFact

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def done(sfboost, tmp_path_factory):
    """Six new hospitals, in one of which the heart rate says the opposite; their rows are mixed."""
    folder, rng = tmp_path_factory.mktemp("many"), np.random.default_rng(3)
    names = [*(f"new {i}" for i in range(5)), HOSTILE]
    parts = [draw(name, 300, rng, heart=-1.0 if name == "new 2" else 0.8) for name in names]
    new = pd.concat(parts).sample(frac=1.0, random_state=0)
    training().to_csv(folder / "train.csv", index=False)
    new.to_csv(folder / "new.csv", index=False)
    outputs = ("-o", folder / "out.csv", "--report", folder / "page.html")
    told = sfboost.json("run", folder / "train.csv", folder / "new.csv", *ROLES, "--no-evaluate", *outputs)
    return folder, new, told


def test_every_domain_is_told_and_the_one_that_changed_is_named(done):
    _, new, told = done
    assert {part["name"] for part in told["domains"]} == set(new["hospital"])
    assert [part["name"] for part in told["domains"] if part["verdict"] == "changed"] == ["new 2"]
    assert told["domains"][0]["name"] == "new 2"
    assert told["domains"][0]["answer"] > told["domains"][0]["stable"]
    assert sum(part["n_rows"] for part in told["domains"]) == told["rows"] == 1800
    # A domain may be called "3": how many there are is said first.
    assert "features shifted in 1: new 2" in _words_of_many([DomainFact(**part) for part in told["domains"]])


def test_predictions_are_in_the_order_of_the_rows_and_each_is_decided_as_its_domain_is(done):
    folder, new, told = done
    out = pd.read_csv(folder / "out.csv")
    assert out["patient"].tolist() == new["patient"].tolist()
    assert out["hospital"].tolist() == new["hospital"].tolist()
    decided = {part["name"]: part["decision"] for part in told["domains"]}
    assert out["decision"].tolist() == [decided[name] for name in new["hospital"]]
    right = (out["prediction"].to_numpy() == new["sick"].to_numpy())[new["hospital"].to_numpy() == "new 2"]
    assert right.mean() == pytest.approx(told["domains"][0]["answer"])


def test_the_page_runs_no_script_but_its_own_and_has_a_part_for_each_domain(done):
    page = (done[0] / "page.html").read_text()
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{allowed}'" in page
    assert HOSTILE not in page
    assert page.count("<details>") == 6
    links = re.findall(r'href="#(part\d+)"', page)
    assert len(links) == 6
    assert all(f'id="{link}"' in page for link in links)


def test_what_cannot_be_done_for_many_domains_is_said(done, sfboost, tmp_path, monkeypatch):
    folder, new, _ = done
    run = ("run", folder / "train.csv")
    rest = (*ROLES, "--no-evaluate", "-o", tmp_path / "out.csv")
    with monkeypatch.context() as before:
        before.setattr("sfboost.cli.run.learn", None)  # it is said before the work, not after it
        done = sfboost(*run, folder / "new.csv", *rest, "--labels", "sick", code=2)
        assert "--labels are of one target domain" in done.stderr
    new.assign(hospital=new["hospital"].where(new["hospital"] != "new 0")).to_csv(tmp_path / "gaps.csv")
    assert (
        "300 rows of gaps.csv have no 'hospital'"
        in sfboost(*run, tmp_path / "gaps.csv", *rest, code=2).output
    )


@pytest.mark.parametrize("engine", [(), ("--engine", "here")])
def test_a_long_file_of_several_domains_is_read_whole_and_with_an_engine_as_one(
    done, sfboost, tmp_path, monkeypatch, engine
):
    monkeypatch.setattr("sfboost.cli.inputs._LONG_BYTES", 1000)
    run = ("run", done[0] / "train.csv", done[0] / "new.csv", *ROLES, "--no-evaluate")
    told = sfboost.json(*run, "-o", tmp_path / "out.csv", *engine)
    assert ("domains" in told) == (not engine)
    assert len(pd.read_csv(tmp_path / "out.csv")) == 1800
