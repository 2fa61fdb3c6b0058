"""One name, one thing: a reader who meets a class knows which one it is."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import sfboost

HOUSE = Path(sfboost.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"


def test_no_two_classes_have_the_same_name():
    """An underscore in front makes no other name of it."""
    places = defaultdict(list)
    for path in sorted(HOUSE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(f"{path.name}:{node.lineno}")
    assert len(places) > 200
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_what_the_architecture_page_names_is_there():
    """Modules on the way of a call, files where things are, rooms and their modules."""
    page = PAGE.read_text(encoding="utf-8")
    way, where = page.split("## The way of a call")[1].split("## Contracts")[0].split("## Where is it?")
    named = re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)(?:\.[A-Z]\w+)?(?:\.\w+)?`", way)
    assert len(named) > 60
    missing = [name for name in named if not _is_module_or_its_function(name)]
    assert missing == []
    files = re.findall(r"`((?:src|tests)/[^`]+)`", where)
    assert len(files) > 10
    assert [name for name in files if not (PAGE.parents[1] / name).exists()] == []
    rooms = {path.parent.relative_to(HOUSE).parts[0] for path in HOUSE.glob("*/__init__.py")}
    told = set(re.findall(r"`([a-z]+)/`", page.split("## Rooms")[1].split("In the repository")[0]))
    assert rooms - {"lab"} == told - {"learned", "engines", "shifts"}
    for call in ("sfboost run", "`fit` →", "`SFBClassifier.fit`", "sfboost reproduce"):
        steps = re.findall(r"^(\d+)\. ", way.split(call, 1)[1].split("\n**", 1)[0], re.MULTILINE)
        assert [int(step) for step in steps] == list(range(1, len(steps) + 1))
        assert 5 < len(steps) <= 12


def _is_module_or_its_function(name):
    path = HOUSE.joinpath(*name.split("."))
    if path.with_suffix(".py").exists() or (path / "__init__.py").exists():
        return True
    module = path.parent.with_suffix(".py")
    return module.exists() and f"def {path.name}(" in module.read_text(encoding="utf-8")
