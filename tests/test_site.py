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

    from sfboost.choice.reasons import WORDS
    from sfboost.cli.app import app
    from sfboost.diagnostics import CHECKS
    from sfboost_lab.baselines import ADAPTERS, TRAINERS
    from sfboost_lab.datasets import names

    commands = typer.main.get_command(app).commands
    registries = {
        "diagnostics.md": [check.name.removesuffix(", new domain") for check in CHECKS],
        "datasets.md": [f"`{name}`" for name in names()],
        "methods.md": [f"`{name}`" for name in (*TRAINERS, *ADAPTERS)],
        "glossary.md": list(WORDS),
        "command-line.md": [f"sfboost {name}" for name in commands],
    }
    lost = {
        page: [entry for entry in entries if entry not in docs(page)] for page, entries in registries.items()
    }
    assert {page: entries for page, entries in lost.items() if entries} == {}
