"""The site lists every page, so that none is built and never found."""

import re
from pathlib import Path
from urllib.parse import urlsplit

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
