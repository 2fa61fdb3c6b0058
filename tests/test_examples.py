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


#: Those that need more than the core, and those that take more than a few seconds.
NEEDS = {"own_network": "torch", "at_scale": "pyarrow"}
LONG = {"own_network", "how_good_here", "embeddings", "at_scale", "four_hospitals"}


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.long] * (path.stem in LONG), id=path.stem) for path in EXAMPLES],
)
def test_the_example_prints_what_the_gallery_says(path):
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem], reason="an extra is not installed")
    done = subprocess.run([sys.executable, "-W", "ignore", path], capture_output=True, text=True, check=True)
    assert GALLERY[f"examples/{path.name}"] in done.stdout.splitlines()
