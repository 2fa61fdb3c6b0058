"""Every example runs as it is, and prints what the gallery says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
GALLERY = dict(
    re.findall(
        r"^\| `(examples/\w+\.py)` \|[^|]*\| (.*) \|$",
        (ROOT / "docs" / "examples.md").read_text("utf-8"),
        re.M,
    )
)


def test_the_gallery_lists_every_example():
    assert set(GALLERY) == {f"examples/{path.name}" for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_prints_what_the_gallery_says(path):
    done = subprocess.run([sys.executable, "-W", "ignore", path], capture_output=True, text=True, check=True)
    assert GALLERY[f"examples/{path.name}"] in done.stdout.splitlines()
