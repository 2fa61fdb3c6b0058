"""`sfboost-lab compare`: systems on one's own table, each domain left out."""

import json
import re
from functools import partial

import numpy as np
import pytest

typer = pytest.importorskip("typer", reason="the [app] extra brings the command")
pd = pytest.importorskip("pandas")

from typer.testing import CliRunner  # noqa: E402

from sfboost.cli.console import Console  # noqa: E402
from sfboost_lab.commands.app import app  # noqa: E402
from sfboost_lab.experiments.comparison import ChosenSystem, SystemComparison, dataset_of, rows_of  # noqa: E402
from sfboost_lab.experiments.rules import LEAVE_ONE_OUT, TRAINING_DOMAINS  # noqa: E402
from sfboost_lab.experiments.run import Run  # noqa: E402
from sfboost_lab.experiments.store import Store  # noqa: E402


def write(path, n_domains=4, n_rows=80):
    """One column of the same meaning everywhere, one that turns round in town 0, one of text."""
    rng = np.random.default_rng(0)
    made = []
    for town in range(n_domains):
        y = rng.integers(0, 2, n_rows)
        sign = -1 if town == 0 else 1
        made.append(
            pd.DataFrame(
                {
                    "age": y + rng.normal(size=n_rows),
                    "ward": sign * 2 * y + rng.normal(size=n_rows),
                    "sex": rng.choice(["f", "m"], n_rows),
                    "sick": np.array(["no", "yes"])[y],
                    "town": f"t{town}",
                }
            )
        )
    pd.concat(made).to_csv(path, index=False)
    return path


def compare(*words):
    return CliRunner().invoke(app, ["compare", *map(str, words)])


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "towns.csv", 3)


@pytest.mark.parametrize("width", [60, 200])
def test_no_number_is_cut_on_a_narrow_terminal(table, tmp_path, monkeypatch, width):
    monkeypatch.setattr(
        "sfboost_lab.commands.results.Console", partial(Console, force_terminal=True, width=width)
    )
    words = [table, "--target", "sick", "--domain", "town", "--seeds", 2, "--jobs", 1, "-s", "pooled"]
    output = compare(*words, "--out", tmp_path / "r").output
    assert "…" not in output
    assert len(re.findall(r"[\d.]+ ± [\d.]+ \(2\)", output)) == 4  # three towns and their mean
    assert ("┃" in output) == (width == 200)


def test_what_is_missing_is_said_once_not_in_every_run(table, tmp_path):
    rows = pd.read_csv(table)
    rows.loc[::3, "age"] = np.nan
    rows.loc[:1, "sick"] = None
    rows.loc[2, "town"] = None
    rows.to_csv(table, index=False)
    words = [table, "--target", "sick", "--domain", "town", "--seeds", 2, "--jobs", 1, "-s", "pooled"]
    result = compare(*words, "--out", tmp_path / "r")
    assert result.exit_code == 0, result.output
    assert result.output.count("is put there: 'age' in 33 %") == 1
    assert result.output.count("2 rows have no 'sick' and are left out.") == 1
    assert result.output.count("1 row has no 'town' and is left out.") == 1


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "arrow"])
def test_a_table_is_read_as_every_command_reads_it(table, tmp_path, ending):
    """Semicolons, decimal commas and Windows-1252; compressed; Arrow. It knew commas alone."""
    words = ["--target", "sick", "--domain", "town", "--seeds", 1, "--jobs", 1, "-s", "pooled", "--json"]
    plain = compare(table, *words, "--out", tmp_path / "a")
    rows, other = pd.read_csv(table), tmp_path / f"other.{ending}"
    if ending == "arrow":
        rows.to_feather(other)
    else:
        rows.to_csv(other, index=False, sep=";", decimal=",", encoding="cp1252")
    done = compare(other, *words, "--out", tmp_path / "b")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["tables"][0]["rows"] == json.loads(plain.stdout)["tables"][0]["rows"]


def test_a_table_with_its_differences_and_latex(table, tmp_path):
    words = [table, "--target", "sick", "--domain", "town", "--stable", "age", "--seeds", 1, "--jobs", 1]
    words += ["-s", "pooled", "-s", "sfb-columns", "--out", tmp_path / "r", "--latex", tmp_path / "t.tex"]
    result = compare(*words)
    assert result.exit_code == 0, result.output
    assert "SFB (stable columns) - pooled classifier" in result.output
    assert r"\begin{tabular}" in (tmp_path / "t.tex").read_text()
    done = Store(tmp_path / "r").read().records
    assert {record.run.data["new"] for record in done.values()} == {"t0", "t1", "t2"}
    # Where the ward means the opposite, the age alone is better.
    found = {r.run.trainer: r.value("test-t0") for r in done.values() if r.run.data["new"] == "t0"}
    assert found["sfb-columns"] > found["pooled"] + 0.2
    again = compare(*words)
    assert again.exit_code == 0
    assert len(Store(tmp_path / "r").read().records) == len(done)
    assert "already" in again.output


def test_what_there_is_to_do_is_said_before_and_quick_does_little_of_it(table, tmp_path):
    words = [table, "--target", "sick", "--domain", "town", "--jobs", 1, "-s", "left-out-linear", "--quick"]
    result = compare(*words, "--out", tmp_path / "r")
    assert result.exit_code == 0, result.output
    assert "3 runs of 3 trained models (systems: 1, new domains: 3, draws: 1)." in result.output
    assert "(QUICK)" in result.output
    assert len(Store(tmp_path / "r").read().records) == 3
    options = {"source": str(table), "target": "sick", "domain": "town"}
    whole = SystemComparison("table", options, (ChosenSystem.named("left-out-linear"),))
    assert whole.cost(5).startswith("45 runs")  # three penalties, three towns, five draws


def test_settings_are_chosen_by_domains_left_out_where_there_are_three(tmp_path):
    options = {"target": "sick", "domain": "town"}
    for n_domains, rule in ((4, LEAVE_ONE_OUT), (3, TRAINING_DOMAINS)):
        source = write(tmp_path / f"{n_domains}.csv", n_domains, 20)
        made = SystemComparison(
            "table", {"source": str(source), **options}, (ChosenSystem.named("left-out-linear"),)
        )
        assert made.rule() is rule
        (group, *_) = made.plan(1)
        left_out = {run.left_out for run in group.runs}
        assert left_out == ({None, "t1", "t2", "t3"} if n_domains == 4 else {None})
        assert len({str(run.hyper) for run in group.runs}) == 3


def test_rows_of_the_new_domain_decide_nothing_about_the_encoding(table):
    data = {"source": str(table), "target": "sick", "domain": "town", "new": "t0"}
    run = Run("table", "pooled", 0, "compare", data=data)
    dataset = dataset_of(run)
    assert dataset.train == ("t1", "t2")
    assert dataset.test == ("t0",)
    rows = rows_of(run, dataset)
    assert set(rows.train.domain) == {"t1", "t2"}
    assert len(rows.train) + len(rows.validation) == 160
    assert [place.name for place in rows.places if not place.chooses] == ["test-t0"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Compare on which data?"),
        (["no-such.csv", "--target", "y", "--domain", "d"], "There is no file"),
        (["no_such_set"], "No data set"),
        (["ac", "-s", "no-such"], "no-such"),
        (["ac", "-s", "pooled+no-such"], "no-such"),
        (["ac", "--target", "y"], "leave the options out"),
    ],
)
def test_what_is_wrong_is_one_sentence(words, said):
    result = compare(*words)
    assert result.exit_code != 0
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_column_that_is_no_feature_is_left_out(table, tmp_path):
    rows = pd.read_csv(table)
    rows["patient"] = [f"P{k}x" for k in range(len(rows))]
    rows.to_csv(tmp_path / "ids.csv", index=False)
    words = ["--target", "sick", "--domain", "town", "--seeds", 1, "--jobs", 1, "-s", "pooled"]
    with_ids = compare(tmp_path / "ids.csv", *words, "--out", tmp_path / "a")
    without = compare(table, *words, "--out", tmp_path / "b")
    assert with_ids.exit_code == without.exit_code == 0
    assert [line for line in with_ids.output.splitlines() if "pooled" in line] == [
        line for line in without.output.splitlines() if "pooled" in line
    ]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda rows: rows.assign(sick=rows.sick.where(rows.town != "t0", "maybe")),
            "'maybe' is in domain 't0' alone",
        ),
        (lambda rows: rows[(rows.town != "t0") | (rows.index < 1)], "'t0' has 1 of the 5 rows"),
    ],
)
def test_domains_that_cannot_be_left_out_are_refused_before_anything_runs(table, tmp_path, spoil, said):
    spoil(pd.read_csv(table)).to_csv(table, index=False)
    result = compare(table, "--target", "sick", "--domain", "town", "-s", "pooled", "--out", tmp_path / "r")
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert not (tmp_path / "r").exists()


def test_stable_columns_are_not_searched_for(table):
    result = compare(table, "--target", "sick", "--domain", "town", "--stable", "auto")
    assert result.exit_code == 2
    assert "sfboost fit … --stable auto" in " ".join(result.output.split())


def test_a_table_needs_its_two_columns(table):
    result = compare(table)
    assert result.exit_code != 0
    assert "--target and --domain" in result.output


@pytest.mark.parametrize(
    ("stable", "expected"),
    [(("age",), ["sfb-columns", "sfb-best"]), ((), ["left-out-linear", "sfb-components"])],
)
def test_what_is_for_embeddings_is_compared_by_default_only_where_no_columns_are_known(
    table, stable, expected
):
    from sfboost_lab.commands.compare import _comparison

    made = _comparison(str(table), "sick", "town", stable, (), (), None)
    used = {system.trainer for system in made.systems} | {system.adapter for system in made.systems}
    assert used == {"pooled", "none", "t3a", "shot", *expected}


def test_the_tables_as_json_or_not_at_all_and_why_they_are_not_those_of_evaluate(table, tmp_path):
    words = [table, "--target", "sick", "--domain", "town", "--seeds", 2, "--jobs", 1, "-s", "pooled"]
    words += ["--out", tmp_path / "r"]
    assert "These are not the figures of `sfboost evaluate`" in " ".join(compare(*words).stdout.split())
    told = json.loads(compare(*words, "--json").stdout)
    (row,) = told["tables"][0]["rows"]
    assert row["cells"].keys() >= {"t0", "t1", "t2"}
    assert all(0.0 <= one["mean"] <= 100.0 and one["draws"] == 2 for one in row["cells"].values())
    assert compare(*words, "--quiet").output == ""


def test_no_test_domain_of_a_named_data_set_is_trained_on():
    made = SystemComparison("colored_digits", {}, (ChosenSystem("pooled"),))
    assert len(made.where) == 11
    assert all(new.startswith("test") for new in made.where)
    assert {name for train, _ in made.where.values() for name in train} == set(made.data.train)
