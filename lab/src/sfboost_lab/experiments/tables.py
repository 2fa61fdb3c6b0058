"""Tables: ours beside the paper's, with the difference and its standard error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfboost_lab.experiments.paper import PaperTable, PaperValue
from sfboost_lab.experiments.rules import Rule, choose
from sfboost_lab.experiments.run import Run, canonical
from sfboost_lab.experiments.store import Record


@dataclass(frozen=True)
class Cell:
    """Accuracies of the seeds, in percent, beside what the paper has.

    Examples
    --------
    >>> cell = Cell((88.0, 90.0), PaperValue(88.5, 0.5, "se", 100))
    >>> cell.mean, cell.standard_error, cell.difference
    (89.0, 1.0, 0.5)
    >>> round(cell.difference_error, 3)
    1.118
    """

    values: tuple[float, ...]
    paper: PaperValue | None = None

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.values)) if self.values else math.nan

    @property
    def standard_error(self) -> float:
        """Of the mean; NaN for one seed."""
        n = len(self.values)
        return float(np.std(self.values, ddof=1) / math.sqrt(n)) if n > 1 else math.nan

    @property
    def difference(self) -> float:
        """Ours minus the paper's."""
        return self.mean - self.paper.mean if self.paper else math.nan

    @property
    def difference_error(self) -> float:
        """Standard error of the difference."""
        return math.hypot(self.standard_error, self.paper.standard_error) if self.paper else math.nan


@dataclass(frozen=True)
class Row:
    """How a row of a table is made from records.

    Parameters
    ----------
    label : str
        What the table calls it.
    trainer : str
        Of the runs to choose among.
    adapter : str
        Of the runs to choose among.
    rule : Rule, optional
        How hyper-parameters were chosen; None where there is nothing to choose.
    unadapted : bool
        Report the chosen models as they were before adaptation.
    test_access : {"none", "unlabelled", "labelled"}
        What is seen of the test domain.
    paper : str, optional
        The row of the paper to stand beside.
    hyper, adapter_hyper : mapping
        Only runs with these values.
    data : mapping
        Options of the data set.
    across_seeds : bool
        One choice for all seeds.
    knows : bool
        Uses knowledge that nobody has in practice, or a setting that was found while looking at test labels.
    remark : str
        How fixed settings were found, where that was not blind; tables show it beside the rule of choice.
    """

    label: str
    trainer: str
    adapter: str = "none"
    rule: Rule | None = None
    unadapted: bool = False
    test_access: str = "none"
    paper: str | None = None
    hyper: Mapping[str, Any] = field(default_factory=dict)
    adapter_hyper: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    across_seeds: bool = False
    knows: bool = False
    remark: str = ""

    @property
    def oracle(self) -> bool:
        """Whether labels of the test domain, or knowledge of it, were used for choosing or for learning."""
        return self.test_access == "labelled" or self.knows or (self.rule is not None and self.rule.oracle)


@dataclass(frozen=True)
class TableColumn:
    """Where a column reads: one place of one data set.

    Parameters
    ----------
    label, dataset, place : str
    paper : str, optional
        The column of the paper; by default the label.
    data : mapping
        Options of the data set, besides those of the row.
    """

    label: str
    dataset: str
    place: str
    paper: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A finished table.

    Attributes
    ----------
    title, note : str
    columns : tuple of str
    rows : tuple of (Row, tuple of Cell)
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Row, tuple[Cell, ...]], ...]
    note: str = ""


def make_table(
    title: str,
    rows: Sequence[Row],
    columns: Sequence[TableColumn],
    records: Mapping[str, Record],
    paper: PaperTable | None = None,
    *,
    note: str = "",
) -> Table:
    """Choose, collect and set beside the paper's.

    Examples
    --------
    >>> from sfboost_lab.experiments import Measured
    >>> run = Run("ac", "erm", seed=0, protocol="doc")
    >>> records = {run.id: Record(run, Measured({"test-0.1": {"accuracy": 0.1}}), 0.0)}
    >>> table = make_table("Synthetic", [Row("ERM", "erm")], [TableColumn("AC", "ac", "test-0.1")], records)
    >>> table.rows[0][1][0].mean
    10.0
    """
    made = []
    for row in rows:
        cells = []
        for column in columns:
            beside = None
            if paper is not None and row.paper is not None:
                beside = paper.value(row.paper, column.paper or column.label)
            found = chosen_records(row, column, records)
            values = tuple(100 * record.value(column.place) for record in found.values())
            cells.append(Cell(tuple(v for v in values if not math.isnan(v)), beside))
        made.append((row, tuple(cells)))
    notes = [note, paper.note if paper is not None else ""]
    return Table(title, tuple(c.label for c in columns), tuple(made), " ".join(n for n in notes if n))


def paired_table(
    title: str,
    pairs: Mapping[str, tuple[Row, Row]],
    columns: Sequence[TableColumn],
    records: Mapping[str, Record],
    paper: PaperTable | None = None,
    *,
    note: str = "",
) -> Table:
    """Return what the second row of each pair has more than the first, over the seeds that both have.

    Examples
    --------
    >>> from sfboost_lab.experiments import Measured
    >>> runs = [Run("ac", name, seed=0, protocol="doc") for name in ("erm", "irm")]
    >>> accuracy = zip(runs, (0.1, 0.7))
    >>> records = {r.id: Record(r, Measured({"test-0.1": {"accuracy": a}}), 0.0) for r, a in accuracy}
    >>> pairs = {"IRM - ERM": (Row("ERM", "erm"), Row("IRM", "irm"))}
    >>> round(paired_table("Gain", pairs, [TableColumn("AC", "ac", "test-0.1")], records).rows[0][1][0].mean)
    60
    """
    made = []
    for label, both in pairs.items():
        cells = []
        for column in columns:
            first, second = (chosen_records(row, column, records) for row in both)
            place = column.place
            gains = (100 * (second[s].value(place) - first[s].value(place)) for s in second if s in first)
            names = [row.paper for row in both if row.paper is not None]
            known = [paper.value(name, column.paper or column.label) for name in names] if paper else []
            beside = None
            if len(known) == 2 and known[0] is not None and known[1] is not None:
                # The paper's runs are not known, so neither is the spread of their differences.
                beside = PaperValue(known[1].mean - known[0].mean, math.nan, "unclear", known[1].seeds)
            cells.append(Cell(tuple(gain for gain in gains if not math.isnan(gain)), beside))
        oracle = any(row.oracle for row in both)
        made.append((replace(both[1], label=label, knows=oracle), tuple(cells)))
    notes = ["Differences in points, paired over seeds.", note]
    return Table(title, tuple(c.label for c in columns), tuple(made), " ".join(n for n in notes if n))


def chosen_records(row: Row, column: TableColumn, records: Mapping[str, Record]) -> dict[int, Record]:
    """Return the record of each seed that a row reports in a column, by seed."""
    candidates = [r.run for r in records.values() if r.ok and _fits(r.run, row, column)]
    if row.rule is None:
        chosen = {run.seed: run for run in candidates}
        if len(chosen) < len(candidates):
            raise ValueError(
                f"The row {row.label!r} has several runs per seed and no rule to choose among them; give it "
                "a rule or fix its hyper-parameters."
            )
    else:
        chosen = choose(candidates, records, row.rule, across_seeds=row.across_seeds)
    reported = {}
    for seed in sorted(chosen):
        run = chosen[seed].unadapted() if row.unadapted else chosen[seed]
        if run.id in records:
            reported[seed] = records[run.id]
    return reported


def _fits(run: Run, row: Row, column: TableColumn) -> bool:
    return (
        (run.dataset, run.trainer, run.adapter, run.left_out)
        == (column.dataset, row.trainer, row.adapter, None)
        and _agrees(run.adapter_hyper, row.adapter_hyper)
        and _agrees(run.hyper, row.hyper)
        and canonical(run.data) == canonical({**row.data, **column.data})
    )


def _agrees(options: Any, wanted: Mapping[str, Any]) -> bool:
    return isinstance(options, Mapping) and all(
        _agrees(options.get(name), value)
        if isinstance(value, Mapping)
        else canonical(options.get(name)) == canonical(value)
        for name, value in wanted.items()
    )
