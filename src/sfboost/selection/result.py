"""What the selector found: verdicts on columns, on the chosen set, and on the whole."""

from __future__ import annotations

from dataclasses import dataclass

from sfboost.selection.invariance import Invariance


@dataclass(frozen=True)
class ColumnVerdict:
    """One column alone.

    Attributes
    ----------
    name : str
    verdict : {"stable", "unstable", "cannot tell"}
    informative : bool
        Whether it says something of Y within domains (condition 2 of the paper).
    p_change, p_drift, p_uninformative : float
        Adjusted for the number of columns (Holm): of "its relation to Y is the same in every domain",
        of "some domain drifts by the tolerance or more", of "it says nothing of Y".
    drift, drift_upper : float
        Estimated drift of the worst domain and its upper confidence limit (see `Invariance`).
    selected : bool
    why : str
        How it came in or why it stayed out.
    by_domain : tuple of float
        Estimated drift of each domain against the others.
    """

    name: str
    verdict: str
    informative: bool
    p_change: float
    p_drift: float
    p_uninformative: float
    drift: float
    drift_upper: float
    selected: bool
    why: str
    by_domain: tuple[float, ...] = ()


@dataclass(frozen=True)
class Selection:
    """Result of a search for stable columns.

    Attributes
    ----------
    status : {"selected", "none", "cannot tell"}
    sentence : str
        The status in words, with what to do.
    columns : tuple of ColumnVerdict
    chosen : Invariance or None
        Evidence about the chosen columns as a set.
    kind : {"posterior", "likelihood"}
    tolerance, alpha : float
    """

    status: str
    sentence: str
    columns: tuple[ColumnVerdict, ...]
    chosen: Invariance | None
    kind: str
    tolerance: float
    alpha: float

    @property
    def in_order(self) -> tuple[ColumnVerdict, ...]:
        """The chosen columns, then the others; the least drift first."""
        return tuple(sorted(self.columns, key=lambda c: (not c.selected, c.drift_upper)))

    def __str__(self) -> str:
        width = max(len(column.name) for column in self.columns)
        lines = [f"{self.status}: {self.sentence}"]
        for c in self.in_order:
            lines.append(
                f"{'*' if c.selected else ' '} {c.name:<{width}}  {c.verdict:<11}  drift {c.drift:.3f} "
                f"(at most {c.drift_upper:.3f})  {c.why}"
            )
        return "\n".join(lines)
