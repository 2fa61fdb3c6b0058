"""One name, one thing: a reader who meets a class knows which one it is."""

import ast
from collections import defaultdict
from pathlib import Path

import sfboost


def test_no_two_classes_have_the_same_name():
    """An underscore in front makes no other name of it."""
    places = defaultdict(list)
    for path in sorted(Path(sfboost.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(f"{path.name}:{node.lineno}")
    assert len(places) > 200
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
