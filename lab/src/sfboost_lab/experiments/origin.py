"""Which code made a record, and when: the commit of the checkout and the day."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def origin() -> dict[str, str]:
    """Return the commit of this code, where it is a checkout, and today's date (UTC).

    A commit that ends in "+" had changes on top of it. An installed copy has no commit; its version is in the
    record anyway.

    Examples
    --------
    >>> "date" in origin()
    True
    """
    commit = _commit()
    named = {} if commit is None else {"commit": commit}
    return {**named, "date": datetime.now(UTC).date().isoformat()}


@cache
def _commit() -> str | None:
    try:
        _git("ls-files", "--error-unmatch", "__init__.py")  # else the repository around us is another's
        head = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/src", ":/lab/src")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}+" if changed else head


def _git(*arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(_PACKAGE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
