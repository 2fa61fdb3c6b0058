"""What an experiment is: a plan, tables, a figure. One file each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sfboost.datasets.contract import as_names
from sfboost_lab.datasets import find
from sfboost_lab.datasets.registry import held
from sfboost_lab.experiments.engines import Group
from sfboost_lab.experiments.store import Record, Records
from sfboost_lab.experiments.tables import Table


@dataclass(frozen=True)
class Experiment:
    """An experiment.

    Parameters
    ----------
    name, summary : str
    seeds, quick_seeds : int
        Repetitions when the user names none.
    plan : callable
        ``plan(seeds, quick)`` returns the groups of runs.
    tables : callable
        ``tables(records)`` returns the tables. Records are those of one protocol.
    figure : callable, optional
        ``figure(records, path)`` draws to a file.
    files_of : str or tuple of str, optional
        Data sets whose files it cannot do without.
    protocol : str
        Protocol of its runs; experiments that share runs share it.

    Examples
    --------
    >>> Experiment("none", "nothing", 1, 1, lambda seeds, quick: [], lambda records: []).protocols
    ('none', 'none-quick')
    """

    name: str
    summary: str
    seeds: int
    quick_seeds: int
    plan: Callable[[int, bool], list[Group]]
    tables: Callable[[Records], list[Table]]
    figure: Callable[[Records, Path], Path] | None = None
    files_of: str | tuple[str, ...] | None = None
    protocol: str = ""

    @property
    def protocols(self) -> tuple[str, str]:
        """Names of the full and of the quick protocol."""
        name = self.protocol or self.name
        return name, f"{name}-quick"

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets whose files it needs."""
        return as_names(self.files_of or ())

    @property
    def needs(self) -> str:
        """The files it needs, in words."""
        return ", ".join(find(name).needs for name in self.data_sets) or "nothing"

    def here(self) -> bool:
        """Whether those files are here."""
        return all(holding.path for name in self.data_sets for holding in held(name))

    def own(self, records: Records, *, quick: bool) -> dict[str, Record]:
        """The records of its full or of its quick protocol."""
        protocol = self.protocols[quick]
        return {name: record for name, record in records.items() if record.run.protocol == protocol}
