"""One name, one thing: a reader who meets a class knows which one it is."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import sfboost
import sfboost_lab

HOUSE = Path(sfboost.__file__).parent
LABORATORY = Path(sfboost_lab.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"


def test_no_two_classes_have_the_same_name():
    """An underscore in front makes no other name of it."""
    places = defaultdict(list)
    for path in sorted([*HOUSE.rglob("*.py"), *LABORATORY.rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(f"{path.name}:{node.lineno}")
    assert len(places) > 80
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_what_the_architecture_page_names_is_there():
    """Every file that it names, and every room."""
    page = PAGE.read_text(encoding="utf-8")
    files = re.findall(r"`((?:src|tests|lab|studies|tools)/[^`]+)`", page)
    assert len(files) > 10
    assert [name for name in files if not (PAGE.parents[1] / name).exists()] == []
    rooms = {path.parent.relative_to(HOUSE).parts[0] for path in HOUSE.glob("*/__init__.py")}
    assert rooms - set(re.findall(r"`([a-z]+)/`", page)) == set()
