"""Records that come with the package, one file per protocol in ``records/``, and when they last held.

``checks.json`` beside them has the last outcome of `sfboost results check` for each protocol, with the digest
of the file it is about: records that were packed anew are not judged by an old outcome.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from sfboost.experiments.canary import Outcome
from sfboost.experiments.record import Record
from sfboost.experiments.store import read_records

_RECORDS = files("sfboost.experiments") / "records"


def committed_records(protocol: str) -> dict[str, Record]:
    """Return the committed records of a protocol; none if there are none.

    Examples
    --------
    >>> committed_records("no such protocol")
    {}
    """
    source = _file(protocol)
    if not source.is_file():
        return {}
    with as_file(source) as path:
        return read_records([path]).records


def last_outcome(protocol: str) -> Outcome | None:
    """Return what `sfboost results check` last said of these records; None if it never saw them.

    Examples
    --------
    >>> last_outcome("no such protocol") is None
    True
    """
    found = _outcomes().get(protocol)
    if found is None or found["records"] != _digest(protocol):
        return None
    known = {name: value for name, value in found.items() if name != "records"}
    return Outcome(**{**known, "not_repeated": tuple(known["not_repeated"])})


def keep_outcome(protocol: str, outcome: Outcome) -> Path:
    """Write an outcome beside the records, and return the file."""
    kept = {**_outcomes(), protocol: {"records": _digest(protocol), **asdict(outcome)}}
    with as_file(_RECORDS / "checks.json") as path:
        path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return path


def _outcomes() -> dict[str, dict[str, Any]]:
    source = _RECORDS / "checks.json"
    found: dict[str, dict[str, Any]] = (
        json.loads(source.read_text(encoding="utf-8")) if source.is_file() else {}
    )
    return found


def _digest(protocol: str) -> str | None:
    source = _file(protocol)
    return hashlib.blake2b(source.read_bytes(), digest_size=8).hexdigest() if source.is_file() else None


def _file(protocol: str) -> Traversable:
    return _RECORDS / f"{protocol}.jsonl.gz"
