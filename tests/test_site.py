"""The site lists every page, so that none is built and never found."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[1]


def test_every_page_of_the_docs_is_in_the_navigation():
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert listed == there


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
        for target in re.findall(r"\]\(((?!https?:|#)[^)]+)\)", text):
            if not (page.parent / target.partition("#")[0]).exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []


def test_an_empty_line_stands_before_every_list_that_follows_text():
    """Else the site shows its entries as one paragraph."""
    entry, run_on = re.compile(r"(?:[-*]|\d+\.) "), []
    for page in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"```.*?```", "```", page.read_text("utf-8"), flags=re.S)
        for paragraph in re.split(r"\n\s*\n", text):
            first, *lines = paragraph.strip("\n").splitlines() or [""]
            if not entry.match(first) and not first.startswith(("#", " ", "<!--", "```")):
                run_on += [f"{page.name}: {line[:40]}" for line in lines if entry.match(line)]
    assert run_on == []


def test_links_to_elsewhere_are_whole_addresses():
    """Whether anybody answers there is not asked: tests need no network."""
    odd = []
    for page in (*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
        for target in re.findall(r"\]\((http[^)]*)\)|<(http[^>]*)>", text):
            parts = urlsplit("".join(target))
            if (
                parts.scheme != "https"
                or not re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc)
                or " " in parts.path
            ):
                odd.append(f"{page.name}: {''.join(target)}")
    assert odd == []


def table_with(page, head):
    """Rows of the first table of a page that has these columns and a method, by method and column."""
    for part in re.findall(r"((?:^\|.*\|$\n?)+)", (ROOT / "docs" / page).read_text("utf-8"), re.M):
        first, _, *rows = (
            [cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()
        )
        if first[0] == "method" and head <= set(first):
            return {row[0]: dict(zip(first[1:], row[1:], strict=True)) for row in rows}
    raise AssertionError(f"{page} has no such table")


def test_the_figures_of_when_it_pays_are_those_of_the_suite():
    shown = table_with("when-it-pays.md", {"as is", "other unit"})
    measured = table_with("shifts.md", {"as is", "other unit"})
    assert {name: {kind: measured[name][kind] for kind in row} for name, row in shown.items()} == shown


def test_the_worst_of_when_it_pays_is_that_of_the_suite():
    """Of the tables against stable - 1 (class means reversed: - 3), logistic regression and boosting."""
    worst = []
    for part in docs("shifts.md").split("**After any kind of change, against stable")[1:]:
        losses = [
            float(target) + (3 if kind == "class means reversed" else 1) - float(figure)
            for kind, cells in re.findall(r"^\| ([^|]+) \|(.*)\|$", part.partition("\n\n**")[0], re.M)
            for figure, target in re.findall(r"([\d.]+); target ≥ ([\d.]+)", cells)
        ]
        worst.append(f"{max(losses):.1f}")
    said = re.search(
        r"is ([\d.]+) points \(heart, .*?\); with gradient boosting ([\d.]+)", docs("when-it-pays.md")
    )
    assert list(said.groups()) == worst


def test_what_the_faq_says_of_the_suite_is_what_it_measured():
    def figures(head):
        table = table_with("shifts.md", head)
        rows = (table["SFB (ours), best (ORACLE)"], table["pooled"], table["stable"])
        columns = [name for name, cell in rows[0].items() if cell != "–"]
        found = [[float(row[name].partition(";")[0]) for name in columns] for row in rows]
        return dict(
            zip(columns, ((best, max(rest)) for best, *rest in zip(*found, strict=True)), strict=True)
        )

    as_is = [round(best - rival, 1) for best, rival in figures({"wine (2)"}).values()]
    kinds = {
        k: round(best - rival, 1)
        for k, (best, rival) in figures({"as is", "other unit"}).items()
        if k != "as is"
    }
    above = sum(gain > 0 for gain in kinds.values())
    said = " ".join(docs("faq.md").split())
    assert (
        f"within half a point of the better of pooled and stable on {sum(g >= -0.5 for g in as_is)}," in said
    )
    assert f"and {-min(as_is)} below it at worst" in said
    assert f"After {above} of {len(kinds)} kinds of change its mean over tables is above both" in said
    assert f"the others within {-min(kinds.values())} of the better one" in said


def test_every_claim_of_the_theory_page_has_a_test_that_exists():
    page = (ROOT / "docs" / "theory.md").read_text("utf-8")
    named = re.findall(r"`((?:lab/)?tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) >= 12
    lost = [
        f"{path}::{name}" for path, name in named if f"def {name}(" not in (ROOT / path).read_text("utf-8")
    ]
    assert lost == []


def docs(page):
    return (ROOT / "docs" / page).read_text("utf-8")


def test_what_is_public_is_on_the_page_of_the_api():
    import sfboost

    wanted = {f"::: sfboost.{name}" for name in sfboost.__all__ if name != "__version__"}
    assert wanted - set(docs("api.md").splitlines()) == set()


def test_tables_of_the_pages_name_all_that_the_registries_have():
    pytest.importorskip("typer", reason="the command is an extra")
    import typer

    from sfboost.choice.choosing import WORDS
    from sfboost.cli.app import app
    from sfboost.diagnostics import CHECKS
    from sfboost_lab.baselines import ADAPTERS, TRAINERS
    from sfboost_lab.datasets import names
    from sfboost_lab.experiments.shifts.kinds import KINDS

    commands = typer.main.get_command(app).commands
    registries = {
        "diagnostics.md": [check.name.removesuffix(", new domain") for check in CHECKS],
        "datasets.md": [f"`{name}`" for name in names()],
        "methods.md": [f"`{name}`" for name in (*TRAINERS, *ADAPTERS)],
        "shifts.md": [kind.replace("_", " ") for kind in KINDS if "_S" not in kind],
        "glossary.md": list(WORDS),
        "command-line.md": [f"sfboost {name}" for name in commands],
    }
    lost = {
        page: [entry for entry in entries if entry not in docs(page)] for page, entries in registries.items()
    }
    assert {page: entries for page, entries in lost.items() if entries} == {}
