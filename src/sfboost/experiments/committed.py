"""Records that come with the package, one file per protocol in ``records/``."""

from __future__ import annotations

from importlib.resources import as_file, files

from sfboost.experiments.record import Record
from sfboost.experiments.store import read_records


def committed_records(protocol: str) -> dict[str, Record]:
    """Return the committed records of a protocol; none if there are none.

    Examples
    --------
    >>> committed_records("no such protocol")
    {}
    """
    source = files("sfboost.experiments") / "records" / f"{protocol}.jsonl.gz"
    if not source.is_file():
        return {}
    with as_file(source) as path:
        return read_records([path]).records
