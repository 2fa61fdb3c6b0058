"""Records kept with the repository, one file per protocol in ``lab/records/``, and whether they still hold.

`sfboost-lab results check` does a few of their runs again. ``checks.json`` has its last outcome for each
protocol, with the digest of the file it is about: records that were packed anew are not judged by an old one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sfboost_lab.experiments.engines import Group, SweepEngine
from sfboost_lab.experiments.origin import origin
from sfboost_lab.experiments.run import Run, digest
from sfboost_lab.experiments.store import Record, Records, read_records
from sfboost_lab.experiments.sweep import sweep

#: Accuracies that differ by more than this many points differ in the digit that tables show.
TOLERANCE = 0.05
#: What a record says of its commit: that of the code, or for old ones that which first held them.
_HOW = {"made": "commit", "packed": "packed"}


@dataclass(frozen=True)
class Repetition:
    """What repeating some runs has shown.

    Parameters
    ----------
    runs : int
        How many were done again.
    different : mapping of str to int
        By trainer and adapter, those whose accuracy differs somewhere, or that now fail.
    largest : float
        The largest difference of an accuracy, in points.
    not_repeated : tuple of str
        Trainers and adapters of which no run was done again: they take too long.
    made : mapping
        Commit and date of the code that repeated them.

    Examples
    --------
    >>> Repetition(9, {"sfb-columns, sfb-leak": 1}, 10.0).stale
    True
    """

    runs: int
    different: Mapping[str, int] = field(default_factory=dict)
    largest: float = 0.0
    not_repeated: tuple[str, ...] = ()
    made: Mapping[str, str] = field(default_factory=dict)

    @property
    def stale(self) -> bool:
        """Whether any run gave other figures."""
        return bool(self.different)

    def words(self) -> str:
        """Return the outcome as one sentence or two."""
        who = f"{self.runs} runs {when(self.made).replace('made', 'repeated', 1)}"
        if self.stale:
            which = ", ".join(f"{n} of {kind}" for kind, n in self.different.items())
            said = (
                f"STALE: of {who}, {sum(self.different.values())} gave other figures ({which}; by "
                f"{self.largest:.1f} points at most)."
            )
        else:
            said = f"{who} gave the same figures."
        return said + (f" Not repeated: {'; '.join(self.not_repeated)}." if self.not_repeated else "")


def when(made: Mapping[str, str]) -> str:
    """Return a commit and a date in words.

    Examples
    --------
    >>> when({"commit": "d65f593", "date": "2026-11-16"}), when({"packed": "42156fb"})
    ('made at commit d65f593 on 2026-11-16', 'packed at commit 42156fb')
    """
    named = (f"{how} at commit {made[key]}" for how, key in _HOW.items() if key in made)
    words = next(named, "made at an unknown commit")
    return f"{words} on {made['date']}" if "date" in made else words


def repeat(
    groups: Sequence[Group], records: Records, folder: Path, engine: SweepEngine | None = None
) -> Repetition:
    """Do the runs of some groups again, in a folder of their own, and compare them with their records."""
    again = sweep(groups, folder, engine).records
    every = {kind(record.run) for record in records.values()}
    done = {kind(run) for group in groups for run in group.runs}
    return compare(records, again, not_repeated=tuple(sorted(every - done)))


def compare(records: Records, again: Records, *, not_repeated: tuple[str, ...] = ()) -> Repetition:
    """Return how far the runs that were done again are from their records.

    Examples
    --------
    >>> from sfboost_lab.experiments import Measured
    >>> run = Run("ac", "erm", seed=0, protocol="doc")
    >>> old, new = (Record(run, Measured({"test": {"accuracy": a}}), 1.0) for a in (0.7, 0.6))
    >>> outcome = compare({run.id: old}, {run.id: new})
    >>> dict(outcome.different), round(outcome.largest)
    ({'erm': 1}, 10)
    """
    different: Counter[str] = Counter()
    both = [name for name in again if name in records and records[name].ok]
    largest = 0.0
    for name in both:
        distance = furthest(records[name], again[name])
        if not distance <= TOLERANCE:
            different[kind(again[name].run)] += 1
            largest = max(largest, 100.0 if math.isnan(distance) else distance)
    return Repetition(len(both), dict(different), largest, not_repeated, origin())


def furthest(record: Record, again: Record) -> float:
    """Return the largest difference of an accuracy in points; NaN where one of them has none."""
    if record.measured is None or again.measured is None:
        return math.nan
    places = {*record.measured.metrics, *again.measured.metrics}
    found = [abs(100 * (record.value(place) - again.value(place))) for place in sorted(places)]
    return math.nan if any(map(math.isnan, found)) else max(found, default=0.0)


def kind(run: Run) -> str:
    """Return trainer and adapter in words.

    Examples
    --------
    >>> kind(Run("ac", "irm", seed=0, protocol="doc", adapter="t3a"))
    'irm, t3a'
    """
    return run.trainer if run.adapter == "none" else f"{run.trainer}, {run.adapter}"


def sample(groups: Sequence[Group], records: Records, seconds: float) -> list[Group]:
    """Return groups that took no longer than this, together: of every kind, on every data set, then any.

    What a group took is in its records; the cheapest is taken whatever it took. A group is done as a whole,
    because its runs share training.
    """
    groups = [group for group in groups if all(run.id in records for run in group.runs)]
    cost = {group: sum(records[run.id].seconds for run in group.runs) for group in groups}
    cheap = sorted(groups, key=cost.__getitem__)
    taken = cheap[:1]
    for parts in (_kinds, _kinds_by_data):
        for group in cheap:
            news = parts(group) - {part for other in taken for part in parts(other)}
            if news and sum(map(cost.__getitem__, taken)) + cost[group] <= seconds:
                taken.append(group)
    for group in sorted(groups, key=lambda group: group.runs[0].id):  # in no order of cost or seed
        if group not in taken and sum(map(cost.__getitem__, taken)) + cost[group] <= seconds:
            taken.append(group)
    return taken


def _kinds(group: Group) -> set[str]:
    return {kind(run) for run in group.runs}


def _kinds_by_data(group: Group) -> set[str]:
    return {digest([kind(run), run.dataset, run.data]) for run in group.runs}


#: Where they are: the laboratory is installed from a checkout.
CHECKOUT = Path(__file__).resolve().parents[3] / "records"


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
