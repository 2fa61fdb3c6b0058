"""A golden value changes only with a line in the commit that says why it was wrong: "Golden: …".

python tools/check_golden.py

Looks at the commits that come after this check that change `tests/golden/expected*`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = "tools/check_golden.py"
GOLDEN = "tests/golden/expected*"
REASON = re.compile(r"^Golden: \S", re.MULTILINE)


def unexplained(root: Path) -> list[str]:
    """Return the commits, by short name and title, that change a golden value and do not say why."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout

    first = git("log", "--diff-filter=A", "--format=%H", "--", HERE).split()
    if not first:
        return []
    changing = git(
        "log", "--no-merges", "--ancestry-path", "--format=%H", f"{first[-1]}..HEAD", "--", GOLDEN
    ).split()
    silent = [commit for commit in changing if not REASON.search(git("show", "-s", "--format=%B", commit))]
    return [git("show", "-s", "--format=%h %s", commit).strip() for commit in silent]


def main() -> int:
    """Print the commits that say nothing."""
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        print("No git repository: what commits say of golden values is not checked.")
        return 0
    for commit in (found := unexplained(root)):
        print(f"{commit}: changes a golden value without a line 'Golden: …' that says why it was wrong.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
