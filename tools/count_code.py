"""Count lines of code by room, without comments, docstrings and blank lines.

python tools/count_code.py [--rooms | --files]
"""

import argparse
import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = {"library": ("src",), "laboratory": ("lab/src",), "tests": ("tests", "lab/tests")}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(path: Path) -> int:
    """Lines of a file that are neither blank nor comments nor docstrings."""
    text, said = path.read_text(encoding="utf-8"), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            said.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for number, line in lines if number not in said and line.strip() and line.lstrip()[0] != "#")


def files_of(part: str) -> dict[Path, int]:
    """Every Python file of a part, relative to where the part begins, with its lines of code."""
    return {
        path.relative_to(ROOT / folder): code_lines(path)
        for folder in PARTS[part]
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def room_of(path: Path) -> str:
    """Return the package and its first folder: the room that a file stands in."""
    return "/".join(path.parts[: min(2, len(path.parts) - 1)])


def main() -> None:
    """Print one line, or one for each room or file above it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rooms", action="store_true", help="one line for each room")
    parser.add_argument("--files", action="store_true", help="one line for each file")
    options, totals = parser.parse_args(), {}
    for part in PARTS:
        counts = files_of(part)
        totals[part] = sum(counts.values())
        if options.rooms or options.files:
            lines: dict[str, int] = {}
            for path, number in counts.items():
                name = str(path) if options.files else room_of(path)
                lines[name] = lines.get(name, 0) + number
            print(f"{part}\n" + "\n".join(f"{number:7d}  {name}" for name, number in sorted(lines.items())))
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in (ROOT / "docs").rglob("*.md"))
    ratio = totals["tests"] / (totals["library"] + totals["laboratory"])
    told = ", ".join(f"{part} {number}" for part, number in totals.items())
    print(f"Lines of code: {told} ({ratio:.2f} x the code); docs {words} words")


if __name__ == "__main__":
    sys.exit(main())
