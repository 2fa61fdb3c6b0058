"""Writes what the golden tests expect; see `tests/helpers/golden_cases.py`. Needs every extra.

    python tests/golden/make.py            # every case
    python tests/golden/make.py tables     # only these

Run it when a number changes on purpose, and say in the commit which and why. Numbers that agree within the
tolerance stay as they are in the file, so that `git diff` shows what changed.
"""

import json
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from golden_cases import CASES
from golden_data import EXPECTED, differences, plain


def kept(old, new):
    """The new tree, with the old entries that it agrees with."""
    return {
        name: old[name] if name in old and not any(differences(old[name], entry)) else entry
        for name, entry in new.items()
    }


def main(names):
    """Make the named cases again."""
    expected = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.exists() else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            expected[name] = kept(expected.get(name, {}), plain(CASES[name][0]()))
    parts = []
    for case in (name for name in CASES if name in expected):
        entries = (f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in expected[case].items())
        parts.append(f" {json.dumps(case)}: {{\n" + ",\n".join(entries) + "\n }")
    EXPECTED.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or CASES)
