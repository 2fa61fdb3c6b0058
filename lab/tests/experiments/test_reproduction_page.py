"""Tables of the pages on reproduction that were taken from records: figures and marks."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the [torch] extra brings the trainers")

from sfboost_lab.experiments import cmnist, cmnist_parts
from sfboost_lab.experiments.committed import committed_records
from sfboost_lab.experiments.paper import paper_table
from sfboost_lab.experiments.registry import EXPERIMENTS
from sfboost_lab.experiments.rendering import number, words
from sfboost_lab.experiments.tables import chosen_records

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reproduction-details.md").read_text("utf-8")
FIRST_SCREEN = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
#: Experiment → the heading below which its table stands, and how many of its rows are matched by name.
TABLES = {
    "synthetic": ("## Synthetic data", 11),
    "cmnist": ("## ColoredMNIST", 20),
    "cmnist-domains": ("**Over eleven agreements**", 19),
    "penalties": ("**Other penalties**", 8),
    "pacs": ("## PACS", 11),
}
_FIGURE = re.compile(r"[+-]?\d+\.\d|\b100\b")

pytestmark = pytest.mark.long


@cache
def rows_of(name):
    """Rows of the first table of an experiment, from the committed records, by name."""
    experiment = EXPERIMENTS[name]
    records = experiment.own(committed_records(experiment.protocols[0]), quick=False)
    return {row.label: (row, cells) for row, cells in experiment.tables(records)[0].rows}


def shown_below(heading, page=PAGE):
    """Name → (whole first cell, the others) of the first table below a heading."""
    part = page[page.index(heading) :]
    lines = re.search(r"(?:^\|.*\|\n)+", part, re.M).group().splitlines()[2:]
    found = {}
    for line in lines:
        first, *rest = (cell.strip() for cell in line.strip("|").split(" | "))
        name = re.sub(r"[¹²³]| \(ORACLE\)|, 3 seeds", "", first).replace("  ", " ").strip()
        found[name.replace("pseudo-labels", "PL")] = (first, rest)
    return found


def figures(text):
    return {float(figure) for figure in _FIGURE.findall(re.sub(r"\(also [^)]*\)", "", text))}


@pytest.mark.parametrize("name", TABLES)
def test_rows_have_the_mark_and_the_figures_of_the_records(name):
    heading, n_rows = TABLES[name]
    shown, made = shown_below(heading), rows_of(name)
    both = shown.keys() & made.keys()
    assert len(both) == n_rows, (sorted(shown.keys() - both), sorted(made.keys() - both))
    for label in both:
        (first, rest), (row, cells) = shown[label], made[label]
        assert ("(ORACLE)" in first) == row.oracle, first
        assert ("¹" in first) == ("moved towards" in row.remark), first
        assert ("²" in first) == ("coloured like" in row.remark or "200 of 600" in row.remark), first
        assert ("³" in first) == (row.adapter in ("t3a", "pl-last", "pl-all") and name == "cmnist-domains")
        told = figures(" | ".join(rest))
        assert told, first
        assert told <= {float(figure) for cell in cells for figure in _FIGURE.findall(words(cell))}, first


@pytest.mark.parametrize(
    ("name", "heading", "column"),
    [
        ("synthetic", "**Synthetic data**", None),
        ("cmnist-domains", "**ColoredMNIST**", "0.1"),
        ("pacs", "**PACS**", None),
    ],
)
def test_the_first_screen_has_the_figures_of_the_records(name, heading, column):
    shown, made = shown_below(heading, FIRST_SCREEN), rows_of(name)
    found = {label.split(":")[0]: cells for label, cells in shown.items()}
    assert len(found.keys() & made.keys()) >= 5
    for label in found.keys() & made.keys():
        (first, rest), (row, cells) = found[label], made[label]
        if column is not None:
            cells = [cells[[f"{a:.1f}" for a in cmnist.AGREEMENTS].index(column)]]
        assert ("(ORACLE)" in first) == row.oracle, first
        ours = re.findall(r"[\d.]+ ± [\d.]+", " | ".join(rest))
        assert ours == [f"{number(cell.mean)} ± {number(cell.standard_error)}" for cell in cells], first
        theirs = [cell for cell in rest if cell and "±" not in cell]
        assert name == "pacs" or theirs == [number(c.paper.mean) for c in cells if c.paper], first


def test_the_first_screen_shows_the_paper_and_who_gains_more_on_pacs():
    shown = shown_below("**PACS**", FIRST_SCREEN)
    styles, paper = ("photo", "art_painting", "cartoon", "sketch"), paper_table("pacs")
    rows = {"ERM": "ERM", "SFB, no adaptation": "SFB no adpt.", "SFB": "SFB"}
    for label, row in rows.items():
        assert shown[f"the paper's {label}"][1] == [number(paper.value(row, style).mean) for style in styles]
    lines = (ROOT / "records" / "studies" / "learn_pacs.jsonl").read_text("utf-8").splitlines()
    scores = {line["style"]: line["scores"] for line in map(json.loads, lines)}
    for adapter in ("t3a", "shot"):
        assert shown[f"pooled + {adapter.upper()}"][1] == [number(100 * scores[s][adapter]) for s in styles]
    assert all(scores[style]["shot"] > scores[style]["answer"] for style in styles)
    assert sum(scores[style]["t3a"] > scores[style]["answer"] for style in styles) == 3


def test_what_each_number_of_components_gains_on_pacs_is_what_the_page_says():
    records, gained = committed_records("pacs"), {}
    for record in records.values():
        run = record.run
        if run.adapter == "sfb-components" and run.left_out is None:
            place, n = f"test-{run.data['test']}", run.adapter_hyper["n_components"]
            gain = record.value(place) - records[run.unadapted().id].value(place)
            gained.setdefault((n, run.data["test"]), []).append(gain > 0)
    assert [len(seeds) for seeds in gained.values()] == [5] * 12
    assert all(all(seeds) for seeds in gained.values())
    assert "4, 8 and 16 of them gained in every style and seed" in " ".join(PAGE.split())


def test_what_stress_domains_choose_on_colored_mnist_is_what_the_page_says():
    records, (column,) = committed_records(cmnist.PROTOCOL), cmnist.COLUMNS
    chosen = chosen_records(cmnist_parts.SFB_OURS, column, records).values()
    three = sum(
        (r.run.adapter_hyper["correction"], r.run.adapter_hyper["rounds"]) == ("posthoc", 3) for r in chosen
    )
    means = []
    for told in cmnist.OURS["sfb-flat"]:
        row = replace(cmnist_parts.SFB_OURS, rule=None, adapter_hyper=told)
        found = chosen_records(row, column, records).values()
        means.append(100 * sum(r.value(column.place) for r in found) / len(found))
    one, _, five, likelihood = map(number, means)
    said = " ".join(PAGE.split())
    assert f"post-hoc in three rounds for {three} of {len(chosen)} seeds" in said
    assert f"One round has {one}, five {five}, the likelihood {likelihood} " in said
