"""The report: frozen, printable, exportable; the list of checks is what runs."""

import json
import re

import numpy as np
import pytest

from sfboost import StableFeatureBoosting
from sfboost.diagnostics import CHECKS, VERDICTS, diagnose, make_new_rows, make_training_rows
from sfboost_lab.testing import Dials, simulate


@pytest.fixture(scope="module")
def report():
    problem = simulate(Dials(n_rows=500, n_training_rows=500), seed=0)
    X, y, domain = problem.training_rows()
    model = StableFeatureBoosting([0, 1], learner=None)
    return model.diagnose(X, y, domain, problem.new.X)


def test_every_check_of_the_list_runs_and_names_itself(report):
    assert [result.check for result in report] == [check.name for check in CHECKS]
    assert not report.skipped
    for result in report:
        assert result.verdict in VERDICTS
        assert result.sentence.endswith(".")
        assert result.remedy or result.verdict in ("holds", "cannot tell")


def test_the_report_says_the_most_alarming_verdict(report):
    assert VERDICTS.index(report.verdict) == max(VERDICTS.index(result.verdict) for result in report)
    assert str(report).startswith(f"Diagnosis: {report.verdict}")
    assert all(result.check in str(report) for result in report)


def test_json_holds_every_result_and_no_nan(report):
    loaded = json.loads(report.to_json())
    assert [entry["check"] for entry in loaded["results"]] == [check.name for check in CHECKS]
    for result, entry in zip(report, loaded["results"], strict=True):
        assert str(result).startswith(result.check)
        assert {"verdict", "statistic", "standard_error", "p_value", "sentence", "remedy"} < entry.keys()
    assert loaded["results"][0]["details"]["p_by_domain"].keys() == {"0", "1"}
    assert "NaN" not in report.to_json()


def test_no_sentence_says_that_p_is_zero():
    problem = simulate(Dials(training_violation=1.0, new_violation=1.0, label_shift=1.0), seed=0)
    X, y, domain = problem.training_rows()
    k, new = problem.n_stable, problem.new
    sharp = np.vstack([part.posterior for part in problem.training]) ** 3
    sharp /= sharp.sum(axis=1, keepdims=True)
    said = diagnose(
        make_training_rows(sharp, y, domain, X[:, k:], X[:, :k]),
        make_new_rows(new.posterior, new.X_unstable),
    )
    tiny = {result.check for result in said if result.p_value is not None and result.p_value < 0.0005}
    assert {"stability", "calibration", "complementarity", "complementarity, new domain"} <= tiny
    for result in said:
        assert not re.search(r"\bp\b[^.;)]*\b0\.0+\b", result.sentence)
    assert "p < 0.001" in said["stability"].sentence


def test_the_report_says_of_each_unstable_feature_whether_it_changed(report):
    assert {meaning.name for meaning in report.meanings} == {"x2"}
    assert all(str(meaning) in str(report) for meaning in report.meanings)
    loaded = json.loads(report.to_json())["features"]
    assert {part["verdict"] for part in loaded} <= {"changed", "unchanged", "cannot tell"}


def test_checks_without_their_material_are_skipped_by_name():
    new = simulate(Dials(n_rows=300), seed=0).new
    partial = diagnose(new=make_new_rows(new.posterior, new.X_unstable))
    assert [result.check for result in partial] == ["complementarity, new domain"]
    assert dict(partial.skipped)["stability"] == "training"
    assert "needs training X_U" in str(partial)
    with pytest.raises(KeyError, match="No check 'stability' was run"):
        partial["stability"]


def test_diagnosing_writes_to_nothing_and_leaves_the_model_unfitted():
    problem = simulate(Dials(n_rows=300, n_training_rows=300), seed=1)
    X, y, domain = problem.training_rows()
    for array in (X, y, domain):
        array.setflags(write=False)
    before = np.random.get_state()[1].copy()
    model = StableFeatureBoosting([0, 1], learner=None)
    model.diagnose(X, y, domain, problem.new.X)
    assert not hasattr(model, "stable_")
    assert (np.random.get_state()[1] == before).all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (diagnose, "nothing to check"),
        (lambda: diagnose(new=make_new_rows([0.5, 0.4]), level=5), "no false-alarm rate"),
        (lambda: make_training_rows([0.5, 0.4], [0, 2]), "class positions"),
        (lambda: make_training_rows([0.5, 0.4], [0.1, 0.2]), "class position"),
        (lambda: make_training_rows([0.5, 0.4], [0, 1], ["a"]), "pass one domain per row"),
    ],
)
def test_mistakes_get_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
