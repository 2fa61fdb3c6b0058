"""What Arrow says about a table that it cannot read, in words that say what to mend."""

from __future__ import annotations

import re
from collections.abc import Sequence

_RAGGED = re.compile(r"Expected (\d+) columns, got (\d+): (.*)")
_SPOILT = re.compile(r"In CSV column #(\d+): .*conversion error to (\w+): invalid value '(.*)'", re.DOTALL)
_HELD = {"double": "numbers", "bool": "truth values"}
_SHOWN = 60


def explain_arrow(complaint: str, name: str, kind: str, header: Sequence[str] = ()) -> str:
    """A sentence for a complaint of Arrow about the table `name`.

    Examples
    --------
    >>> explain_arrow("CSV parse error: Expected 2 columns, got 3: 1,2,3", "a.csv", "csv")
    'A line of a.csv has 3 cells where the header has 2, and begins with 1,2,3: mend that line.'
    """
    if ragged := _RAGGED.search(complaint):
        columns, cells, line = ragged.groups()
        return (
            f"A line of {name} has {cells} cells where the header has {columns}, and begins with "
            f"{line[:_SHOWN]}: mend that line."
        )
    if "straddles two block" in complaint:
        return f"A line of {name} is longer than a million bytes: shorten its cells, or pass Parquet."
    if "Empty CSV" in complaint:  # a header that does not even end
        return f"{name} has a header but no rows: at least one row is needed."
    spoilt = _SPOILT.search(complaint)
    if spoilt and int(spoilt[1]) < len(header) and spoilt[2] in _HELD:
        column, held = header[int(spoilt[1])], _HELD[spoilt[2]]
        return (
            f"Column {column!r} of {name} held {held} in training, and here it holds "
            f"{spoilt[3][:_SHOWN]!r}: mend such cells, or leave them empty."
        )
    return f"{name} cannot be read as {kind}: {complaint.splitlines()[0] if complaint else 'it is broken'}"
