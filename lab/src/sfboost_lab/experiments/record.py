"""What a run leaves behind: one record, one line, with a checksum."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sfboost_lab.experiments.run import Run

_PACKAGES = ("sfboost", "numpy", "scipy", "scikit-learn", "torch")
_HEAD, _MIDDLE, _TAIL = '{"record":', ',"check":"', '"}'
_CHECK_LENGTH = 16


@dataclass(frozen=True)
class Measured:
    """What measuring one run returns.

    Parameters
    ----------
    metrics : mapping of place to mapping of metric to value
        A place is a domain ("test-0.1"), or one made from labelled rows for choosing ("stress/0.3").
    calibration : mapping
        Temperature, and calibration error before and after.
    diagnostics, timings : mapping
        Anything worth knowing; seconds by stage.
    precision : str
        Of the arithmetic.
    test_access : {"none", "unlabelled", "labelled"}
        What was seen of the test domain. "labelled" is an ORACLE.
    trained_on : tuple of str
        The training domains.

    Examples
    --------
    >>> Measured({"test-0.1": {"accuracy": 0.75}}).precision
    'float64'
    """

    metrics: Mapping[str, Mapping[str, float]]
    calibration: Mapping[str, Any] = field(default_factory=dict)
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    precision: str = "float64"
    test_access: str = "none"
    trained_on: tuple[str, ...] = ()

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Measured:
        """What was written, as it was."""
        return cls(**{**plain, "trained_on": tuple(plain["trained_on"])})


@dataclass(frozen=True)
class Record:
    """A run and what it gave, or why it failed. Written once, never changed.

    `made` names the commit of the code and the date (`origin`). Records older than that name the commit that
    first held them as "packed".

    Examples
    --------
    >>> run = Run("ac", "erm", seed=0, protocol="doc")
    >>> record = Record(run, Measured({"test": {"accuracy": 0.1}}), seconds=1.0)
    >>> Record.from_line(record.to_line()) == record
    True
    """

    run: Run
    measured: Measured | None
    seconds: float
    versions: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    made: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the run gave numbers."""
        return self.error is None

    def value(self, place: str, metric: str = "accuracy") -> float:
        """One number; NaN where the run failed or did not measure it."""
        if self.measured is None:
            return math.nan
        found = self.measured.metrics.get(place, {}).get(metric)
        return math.nan if found is None else float(found)

    def to_line(self) -> str:
        """One line of JSON that ends in a checksum of what stands before it."""
        body = json.dumps(self._plain(), separators=(",", ":"), allow_nan=False)
        return f"{_HEAD}{body}{_MIDDLE}{_check(body)}{_TAIL}\n"

    @classmethod
    def from_line(cls, line: str) -> Record | None:
        """The record of a line; None if the line is torn or was changed."""
        body = line.rstrip("\n")[len(_HEAD) : -(len(_MIDDLE) + _CHECK_LENGTH + len(_TAIL))]
        if line.rstrip("\n") != f"{_HEAD}{body}{_MIDDLE}{_check(body)}{_TAIL}":
            return None
        plain = json.loads(body)
        measured = plain["measured"]
        return cls(
            Run.from_identity(plain["run"]),
            None if measured is None else Measured.from_plain(measured),
            plain["seconds"],
            plain["versions"],
            plain["error"],
            plain.get("made", {}),
        )

    def _plain(self) -> dict[str, Any]:
        measured = None if self.measured is None else {k: _tidy(v) for k, v in vars(self.measured).items()}
        return {
            "id": self.run.id,
            "status": "ok" if self.ok else "failed",
            "run": self.run.identity(),
            "measured": measured,
            "seconds": round(self.seconds, 4),
            "versions": dict(self.versions),
            "error": self.error,
            "made": dict(self.made),
        }


def _check(body: str) -> str:
    return hashlib.blake2b(body.encode(), digest_size=_CHECK_LENGTH // 2).hexdigest()


def _tidy(value: Any) -> Any:
    """Numbers with six significant digits, NaN as null: what is not known is not written."""
    if isinstance(value, Mapping):
        return {str(name): _tidy(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tidy(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


@cache
def versions() -> dict[str, str]:
    """Return the versions that a record names.

    Examples
    --------
    >>> "numpy" in versions()
    True
    """
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


#: Records by the id of their run.
Records = Mapping[str, Record]
