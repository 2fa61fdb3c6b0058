"""Drawing a check and a report with matplotlib (the [app] extra). No figure is registered anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfboost.diagnostics.result import VERDICTS, CheckResult
from sfboost.figures import new_figure

if TYPE_CHECKING:
    from sfboost.diagnostics.report import Diagnosis

_COLOURS = {
    "holds": "tab:green",
    "cannot tell": "tab:gray",
    "doubtful": "tab:orange",
    "violated": "tab:red",
}


def draw_check(result: CheckResult, ax: Any = None) -> Any:
    """The statistic with its 95 % interval, and below it its value in each training domain."""
    by_domain = result.details.get("by_domain", {})
    ax = new_figure((7, 0.35 * len(by_domain) + 1.2)).add_subplot() if ax is None else ax
    colour = _COLOURS[result.verdict]
    if result.statistic is not None:
        reach = None if result.standard_error is None else 1.96 * result.standard_error
        ax.errorbar(result.statistic, 0, xerr=reach, fmt="o", color=colour, capsize=4)
    for row, value in enumerate(by_domain.values(), start=1):
        ax.plot(value, -row, "o", color="tab:blue", alpha=0.6)
    ax.axvline(0.0, color="black", linewidth=0.5)
    ax.set_yticks([-row for row in range(len(by_domain) + 1)], ["result", *map(str, by_domain)])
    ax.set_title(f"{result.check}: {result.verdict}", color=colour)
    return ax


def draw_report(report: Diagnosis, ax: Any = None) -> Any:
    """One coloured mark per check."""
    ax = new_figure((7, 0.45 * len(report) + 1)).add_subplot() if ax is None else ax
    for row, result in enumerate(reversed(report.results)):
        ax.scatter(VERDICTS.index(result.verdict), row, s=120, color=_COLOURS[result.verdict])
    ax.set_xticks(range(len(VERDICTS)), VERDICTS)
    ax.set_yticks(range(len(report)), [result.check for result in reversed(report.results)])
    ax.set_xlim(-0.5, len(VERDICTS) - 0.5)
    ax.grid(axis="y", alpha=0.3)
    return ax
