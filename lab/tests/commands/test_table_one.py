"""`sfboost-lab table-one`: what is printed is what was measured."""

import subprocess
import sys

import numpy as np
import pytest

typer = pytest.importorskip("typer", reason="the [app] extra brings the command")

from typer.testing import CliRunner  # noqa: E402

from sfboost_lab.baselines.table_one import ComparedSystem, MeasuredSystem, Use, table_one, three_parts  # noqa: E402
from sfboost_lab.commands.app import app  # noqa: E402
from sfboost_lab.commands.table_one import make_table  # noqa: E402

KNOWN = {"stable": (0, 3, 6), "unstable": (1, 4, 7)}


def cells(table):
    return [list(column.cells) for column in table.columns]


def test_the_pooled_classifier_uses_everything_and_is_not_robust():
    (row,) = table_one([ComparedSystem("pooled", "pooled")], n_rows=2000)
    shown = [column[0].split(" ")[0] for column in cells(make_table([row]))]
    assert (shown[:5], shown[7]) == (["pooled", *["yes"] * 3, "no"], "nothing")


def test_known_columns_boosted_use_stable_and_complementary_parts_and_are_robust():
    boosted = ComparedSystem("SFB", "sfb-columns", "sfb", KNOWN)
    kept = ComparedSystem("stable", "sfb-columns", "none", KNOWN)
    boosted, kept = table_one([boosted, kept], n_rows=4000)
    assert [use.used for use in boosted.parts.values()] == [True, True, False]
    assert boosted.robust
    assert boosted.test_access == "unlabelled"
    assert [use.used for use in kept.parts.values()] == [True, False, False]
    assert kept.test_access == "none"
    assert boosted.reversed > kept.reversed + 10


def test_a_part_that_is_not_read_costs_nothing_at_all():
    (kept,) = table_one([ComparedSystem("stable", "sfb-columns", "none", KNOWN)], n_rows=1000)
    assert kept.parts["complementary"] == Use(0.0, 0.0)
    assert not kept.parts["complementary"].used


def test_the_table_says_oracle_where_labels_were_seen_and_shows_the_numbers():
    row = MeasuredSystem("X", "labelled", dict.fromkeys(("stable", "complementary"), Use(9.0, 1.0)), 90, 89)
    row = MeasuredSystem("X", "labelled", {**row.parts, "non_complementary": Use(2.9, 1.0)}, 90.0, 89.0)
    shown = [column[0] for column in cells(make_table([row]))]
    assert shown[:2] + shown[3:] == [
        "X",
        "yes (9.0 ± 1.0)",
        "no (2.9 ± 1.0)",
        "yes",
        "90.0",
        "89.0",
        "labels (ORACLE)",
    ]


def test_the_copies_share_the_label_and_differ_otherwise():
    data = three_parts(3000, 0)
    X, y = data.xy("train-0.65")
    for part, rate in (("stable", 0.7), ("complementary", 0.65)):
        agree = (X[:, data.feature_groups[part]] == y[:, None]).mean(axis=0)
        np.testing.assert_allclose(agree, rate, atol=0.04)
    given_label = [np.corrcoef(X[y == k][:, [0, 3, 6]].T) for k in (0, 1)]
    for table in given_label:
        assert np.abs(table - np.eye(3)).max() < 0.1


def test_the_commands_are_listed_with_their_help_and_bring_no_library():
    from sfboost_lab.commands.app import LabCommands

    shown = CliRunner().invoke(app, ["--help"], terminal_width=200).output
    for name, (_, summary) in LabCommands.listed.items():
        assert name in shown
        assert summary.split(".")[0] in shown
        help = CliRunner().invoke(app, [name, "--help"], terminal_width=80, env={"COLUMNS": "80"})
        assert help.exit_code == 0
        assert help.output.startswith("Usage: ")
        assert max(map(len, help.output.splitlines())) <= 80
    code = (
        "import sys\nfrom sfboost_lab.commands import main\ntry:\n    main()\nfinally:\n"
        "    print(sorted({'sklearn', 'pandas', 'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
