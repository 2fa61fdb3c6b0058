"""The tables of the suite: one for each line of what it should reach, the target beside the figure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy import stats

from sfboost_lab.experiments.record import Records
from sfboost_lab.experiments.shifts.kinds import KINDS, UNTOUCHED
from sfboost_lab.experiments.shifts.results import TITLES, BySeed, Results, joined
from sfboost_lab.experiments.shifts.systems import SYSTEMS
from sfboost_lab.experiments.tables import Cell, Row, Table, Target

LEVEL = 0.05
#: Features of pictures have tables of their own: nobody named their stable columns.
PICTURES = {"pacs"}
MIRRORED_AND_SHUFFLED = ("strongest mirrored", "all mirrored", "strongest shuffled", "all shuffled")
#: Rivals of the targets: a plain classifier, the stable one, and SFB as it adapts without a guard.
RIVALS = ("pooled", "stable", "sfb")
#: Learner → how far below pooled and stable `best` may be as is, and above the best rival after a change.
AS_IS = {"logistic": 0.3, "boosting": 0.5}
CHANGED = {"logistic": 1.0, "boosting": 0.0}
#: Kind → what should be seen with 2, 3 and all own domains, in percent.
SEEN = {
    "all mirrored": (95.0, 95.0, 95.0),
    "strongest mirrored": (70.0, 85.0, 95.0),
    "all shuffled": (65.0, 75.0, 90.0),
}
#: Numbers of own domains, and what tables call them.
OWN = {2: "2", 3: "3", None: "all"}
_ENOUGH_ROWS = 900
_MANY_DOMAINS = 5
_CHOSEN = (
    "Mean accuracy over new domains, whose number is in brackets. Every system is fixed; one that is told "
    "what changed, or was settled with these figures in view, says ORACLE."
)


def tables(records: Records) -> list[Table]:
    """Return what the records tell, table by table."""
    found, made = Results.of(records), []
    for learner in found.learners():
        pictures = [name for name in found.tables(learner) if name in PICTURES]
        names = [name for name in found.tables(learner) if name not in PICTURES]
        if names:
            made += [_as_is(found, learner, names), _balanced(found, learner, names)]
            made += [
                _by_kind(found, learner, names),
                _after(
                    found, learner, names, MIRRORED_AND_SHUFFLED, "mirrored and shuffled", CHANGED[learner]
                ),
                _after(found, learner, names, ("class means reversed",), "class means reversed", -1.5),
            ]
            made += _of_best(found, learner, names)
        if pictures:
            made.append(_by_kind(found, learner, pictures))
        made += [_by_agreement(found, learner, name) for name in found.coloured(learner)]
    return [table for table in made if table.rows]


def _of_best(found: Results, learner: str, names: Sequence[str]) -> list[Table]:
    if "best" not in found.systems(learner, names):
        return []
    return [
        _against_stable(found, learner, names),
        _close_to_untouched(found, learner, names),
        _alarms(found, learner, names),
        _seen(found, learner, names),
        _decisions(found, learner, names),
    ]


def _row(system: str, learner: str) -> Row:
    kind = SYSTEMS[system]
    row = Row(kind.label, learner, system, test_access=kind.test_access)
    return replace(row, knows=kind.knows, remark=kind.remark)


def _line(label: str, learner: str) -> Row:
    return replace(_row("best", learner), label=label)


def _cell(values: BySeed, target: Target | None = None) -> Cell:
    return Cell(tuple(values.values()), target=target)


def _minus(values: BySeed, margin: float) -> Target | None:
    return Target(float(np.mean(list(values.values()))) + margin) if values else None


def _systems_table(
    title: str,
    found: Results,
    learner: str,
    columns: Sequence[str],
    figure: Callable[[str, str], BySeed],
    target: Callable[[str], Target | None],
    note: str = "",
) -> Table:
    """One row for each system; `best` has the target of each column."""
    rows = []
    for system in SYSTEMS:
        cells = tuple(
            _cell(figure(system, column), target(column) if system == "best" else None) for column in columns
        )
        if any(cell.values for cell in cells):
            rows.append((_row(system, learner), cells))
    shown = tuple(found.title(learner, column) for column in columns)
    return Table(
        f"{title} ({learner})", shown, tuple(rows), " ".join(part for part in (_CHOSEN, note) if part)
    )


def _as_is(found: Results, learner: str, names: Sequence[str]) -> Table:
    def figure(system: str, name: str) -> BySeed:
        return found.score(learner, name, system, "test-as is")

    def target(name: str) -> Target | None:
        return _minus(joined([figure("pooled", name), figure("stable", name)], "max"), -AS_IS[learner])

    return _systems_table("As is", found, learner, names, figure, target)


def _balanced(found: Results, learner: str, names: Sequence[str]) -> Table:
    def figure(system: str, name: str) -> BySeed:
        return found.score(learner, name, system, "test-as is", "balanced_accuracy")

    title, note = "As is, balanced accuracy", "The mean of the classes' accuracies; no target."
    return _systems_table(title, found, learner, names, figure, lambda name: None, note)


def _by_kind(found: Results, learner: str, names: Sequence[str]) -> Table:
    def figure(system: str, kind: str) -> BySeed:
        return _mean(found, learner, names, system, kind)

    many = len(names) > 1
    title = "Every kind of change, mean over tables" if many else f"Every kind of change, {TITLES[names[0]]}"
    note = "A kind that a table cannot undergo leaves it out."
    return _systems_table(title, found, learner, tuple(KINDS), figure, lambda kind: None, note)


def _mean(found: Results, learner: str, names: Sequence[str], system: str, kind: str) -> BySeed:
    """Mean over tables; none for a system that lacks one of them, which would be compared on other tables."""
    parts = {name: found.score(learner, name, system, f"test-{kind}") for name in names}
    lacking = [n for n in names if not parts[n] and found.score(learner, n, "pooled", f"test-{kind}")]
    return {} if lacking else joined(parts.values())


def _after(
    found: Results, learner: str, names: Sequence[str], kinds: Sequence[str], title: str, margin: float
) -> Table:
    """Mean over some kinds; the target is the best rival of each table and kind, on average."""

    def score(system: str, name: str, kind: str) -> BySeed:
        return found.score(learner, name, system, f"test-{kind}")

    def figure(system: str, name: str) -> BySeed:
        if name == "mean":
            return joined(_mean(found, learner, names, system, kind) for kind in kinds)
        return joined(score(system, name, kind) for kind in kinds)

    def target(name: str) -> Target | None:
        if name != "mean":
            return None
        best = [joined([score(s, each, k) for s in RIVALS], "max") for each in names for k in kinds]
        return _minus(joined(best), margin)

    note = f"Target: best of pooled, stable and SFB without guard in each table and kind, {margin:+.1f}."
    return _systems_table(title.capitalize(), found, learner, (*names, "mean"), figure, target, note)


def _against_stable(found: Results, learner: str, names: Sequence[str]) -> Table:
    rows = []
    for kind in KINDS:
        margin, place, cells = (-3.0 if kind == "class means reversed" else -1.0), f"test-{kind}", []
        for name in names:
            stable = found.score(learner, name, "stable", place)
            cells.append(_cell(found.score(learner, name, "best", place), _minus(stable, margin)))
        if any(cell.values for cell in cells):
            rows.append((_line(kind, learner), tuple(cells)))
    title = f"SFB (ours), best, after any kind of change, against stable - 1 ({learner})"
    note = "Class means reversed: stable - 3. SFB (paper) and the others are in the tables above."
    return Table(title, tuple(found.title(learner, n) for n in names), tuple(rows), note)


def _close_to_untouched(found: Results, learner: str, names: Sequence[str]) -> Table:
    many = [name for name in names if _most_own(found, name) >= _MANY_DOMAINS]
    cells = []
    for name in many:
        untouched = found.score(learner, name, "best", "test-as is")
        mirrored = found.score(learner, name, "best", "test-strongest mirrored")
        cells.append(_cell(mirrored, _minus(untouched, -3.0)))
    rows = ((_line("strongest mirrored", learner), tuple(cells)),) if many else ()
    title = f"Strongest column mirrored, five or more own domains, within 3 points of as is ({learner})"
    return Table(title, tuple(found.title(learner, n) for n in many), rows)


def _most_own(found: Results, name: str) -> int:
    sizes = [
        len(r.measured.trained_on) for r in found.records if r.run.dataset == name and r.measured is not None
    ]
    return max(sizes, default=0)


def _alarms(found: Results, learner: str, names: Sequence[str]) -> Table:
    rows = []
    for kind, (own, told) in itertools.product(UNTOUCHED, OWN.items()):
        p = _p_values(found, learner, names, kind, own)
        if p:
            most = 10.0 if kind == "X_S resampled" else 5.0
            cells = _rate(np.array(p) < LEVEL)
            first = replace(cells[0], target=Target(most, at_least=False))
            rows.append((_line(f"{kind}, {told} own domains, {len(p)} new", learner), (first, *cells[1:])))
    title = f"Alarms where no meaning changed, % at level .05 ({learner})"
    return Table(title, ("alarms", "95 % from", "to"), tuple(rows), "Clopper-Pearson interval over domains.")


def _seen(found: Results, learner: str, names: Sequence[str]) -> Table:
    # A few tables have too few domains for every column.
    tried = {
        own: told
        for own, told in OWN.items()
        if _p_values(found, learner, names, "as is", own, least_rows=_ENOUGH_ROWS)
    }
    rows = []
    for kind in KINDS:
        cells = []
        for own in tried:
            number = list(OWN).index(own)
            p = _p_values(found, learner, names, kind, own, least_rows=_ENOUGH_ROWS)
            rate = _rate(np.array(p) < LEVEL)[0] if p else Cell(())
            aim = Target(SEEN[kind][number]) if kind in SEEN else None
            cells.append(replace(rate, target=aim))
        if any(cell.values for cell in cells):
            rows.append((_line(kind, learner), tuple(cells)))
    title = f"Seen (p < .05) in new domains of {_ENOUGH_ROWS} rows and more, % ({learner})"
    return Table(title, tuple(f"{told} own domains" for told in tried.values()), tuple(rows))


def _p_values(
    found: Results, learner: str, names: Sequence[str], kind: str, own: int | None, least_rows: int = 0
) -> list[float]:
    by_table = (found.p_values(learner, n, f"test-{kind}", own=own, least_rows=least_rows) for n in names)
    return [value for by_seed in by_table for values in by_seed.values() for value in values]


def _decisions(found: Results, learner: str, names: Sequence[str]) -> Table:
    said = {kind: found.decisions(learner, names, f"test-{kind}") for kind in KINDS}
    every = sorted({decision for decisions in said.values() for decision in decisions})
    rows = [
        (_line(kind, learner), tuple(Cell((100 * decisions.count(d) / len(decisions),)) for d in every))
        for kind, decisions in said.items()
        if decisions
    ]
    return Table(f"What best decided, % of domains ({learner})", tuple(every), tuple(rows))


def _by_agreement(found: Results, learner: str, dataset: str) -> Table:
    agreements = tuple(f"{k / 10}" for k in range(10, -1, -1))

    def figure(system: str, agreement: str) -> BySeed:
        return found.score(learner, dataset, system, f"test-{agreement}")

    def target(agreement: str) -> Target | None:
        return _minus(joined([figure("pooled", agreement), figure("sfb", agreement)], "max"), -1.0)

    title = f"Agreement of colour and label, {TITLES[dataset]}"
    note = (
        "Target: better of pooled and SFB (ours) without guard, - 1; what is short is the regret beyond it."
    )
    return _systems_table(title, found, learner, agreements, figure, target, note)


def _rate(seen: Iterable[bool]) -> tuple[Cell, Cell, Cell]:
    """Share in percent and its exact interval."""
    seen = list(seen)
    found = stats.binomtest(int(sum(seen)), len(seen)).proportion_ci(0.95, "exact")
    return Cell((100 * sum(seen) / len(seen),)), Cell((100 * found.low,)), Cell((100 * found.high,))
