"""Records kept with the repository, one file per protocol in ``lab/records/``, and when they last held.

``checks.json`` beside them has the last outcome of `sfboost-lab results check` for each protocol, with the
digest of the file it is about: records that were packed anew are not judged by an old outcome.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sfboost_lab.experiments.canary import Repetition
from sfboost_lab.experiments.record import Record
from sfboost_lab.experiments.store import read_records


def records_of(module: Path) -> Path:
    """The folder of the checkout that a module is in; an installed package has none: that of the folder here.

    Examples
    --------
    >>> records_of(Path("/site-packages/sfboost_lab/experiments/committed.py")).as_posix()
    'records'
    """
    own = module.resolve().parents[3] / "records"
    return own if own.is_dir() else Path("records")


CHECKOUT = records_of(Path(__file__))


def committed_records(protocol: str, folder: Path = CHECKOUT) -> dict[str, Record]:
    """Return the committed records of a protocol; none if there are none.

    Examples
    --------
    >>> committed_records("no such protocol")
    {}
    """
    path = _file(protocol, folder)
    return read_records([path]).records if path.is_file() else {}


def last_outcome(protocol: str, folder: Path = CHECKOUT) -> Repetition | None:
    """Return what `sfboost-lab results check` last said of these records; None if it never saw them.

    Examples
    --------
    >>> last_outcome("no such protocol") is None
    True
    """
    found = _outcomes(folder).get(protocol)
    if found is None or found["records"] != _digest(protocol, folder):
        return None
    known = {name: value for name, value in found.items() if name != "records"}
    return Repetition(**{**known, "not_repeated": tuple(known["not_repeated"])})


def keep_outcome(protocol: str, outcome: Repetition, folder: Path = CHECKOUT) -> Path:
    """Write an outcome beside the records, and return the file."""
    kept = {**_outcomes(folder), protocol: {"records": _digest(protocol, folder), **asdict(outcome)}}
    path = folder / "checks.json"
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


def _outcomes(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / "checks.json"
    found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def _digest(protocol: str, folder: Path) -> str | None:
    path = _file(protocol, folder)
    return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest() if path.is_file() else None


def _file(protocol: str, folder: Path) -> Path:
    return folder / f"{protocol}.jsonl.gz"
