"""`--unstable components`: embeddings in a table, from the training rows to the report."""

import numpy as np
import pytest

pytest.importorskip("typer", reason="the [app] extra brings the command")
pd = pytest.importorskip("pandas")

from typer.testing import CliRunner  # noqa: E402

from sfboost.cli.app import app  # noqa: E402


@pytest.fixture
def tables(tmp_path):
    """Two centres in twelve columns, moved in every town; the last town is new."""
    rng = np.random.default_rng(0)
    centres, made = rng.normal(size=(2, 12)) / 2, []
    for town in ("a", "b", "c", "new"):
        own = centres + rng.normal(size=(2, 12)) / 2
        y = rng.integers(0, 2, 300)
        rows = pd.DataFrame(own[y] + rng.normal(size=(300, 12)) * 0.7, columns=[f"v{j}" for j in range(12)])
        made.append(rows.assign(kind=np.array(["no", "yes"])[y], town=town))
    pd.concat(made[:3]).to_csv(tmp_path / "train.csv", index=False)
    made[3].drop(columns=["kind", "town"]).to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


def sfboost(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output


def test_in_one_step_and_in_three(tables):
    known = [tables / "train.csv", "--target", "kind", "--domain", "town", "--unstable", "components"]
    once, thrice = tables / "once.csv", tables / "thrice.csv"
    report = tables / "report.html"
    sfboost("run", known[0], tables / "new.csv", *known[1:], "--no-evaluate", "-o", once, "--report", report)
    assert "component 1" in report.read_text()
    sfboost("fit", *known, "--no-evaluate", "-o", tables / "m.sfb")
    sfboost("adapt", tables / "m.sfb", tables / "new.csv", "-o", tables / "a.sfb")
    sfboost("predict", tables / "a.sfb", tables / "new.csv", "-o", thrice)
    first, second = pd.read_csv(once), pd.read_csv(thrice)
    pd.testing.assert_frame_equal(first, second)
    assert set(first["decision"]) == {"adapted"}
