"""Records that are kept with the repository, one file per protocol in ``records/``."""

from __future__ import annotations

from pathlib import Path

from sfboost.lab.experiments.record import Record
from sfboost.lab.experiments.store import read_records

#: The folder in a checkout; an installed package has none.
CHECKOUT = Path(__file__).resolve().parents[4] / "records"


def committed_records(protocol: str, folder: Path = CHECKOUT) -> dict[str, Record]:
    """Return the committed records of a protocol; none if there are none.

    Examples
    --------
    >>> committed_records("no such protocol")
    {}
    """
    path = folder / f"{protocol}.jsonl.gz"
    return read_records([path]).records if path.is_file() else {}
