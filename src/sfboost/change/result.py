"""What the test says: `Change`, overall and by feature."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["changed", "unchanged", "cannot tell"]


@dataclass(frozen=True)
class FeatureChange:
    """One unstable feature.

    Attributes
    ----------
    name : str
    columns : tuple of int
        Its columns among the unstable ones.
    p_value : float
        Not adjusted for the number of features.
    ratio : float
        How much of its meaning is left: 1 all, 0 nothing, -1 the opposite.
    power : float
        Expected meaning over its predictive error; below two a loss would hardly be seen.
    rescaled : bool
        Whether its spread is unlike that of every own domain, as after a change of unit.
    importance : float
        Its share in what all unstable features say.
    left : tuple of float
        `ratio` of each of its columns.
    """

    name: str
    columns: tuple[int, ...]
    p_value: float
    ratio: float
    power: float
    rescaled: bool
    importance: float
    left: tuple[float, ...]


@dataclass(frozen=True)
class Change:
    """Whether the unstable features mean in a new domain what they meant in the own ones.

    Attributes
    ----------
    verdict : {"changed", "unchanged", "cannot tell"}
    p_value : float
        Of the new domain among the own ones, under whichever reading of stability makes it less surprising.
    power : float
        Expected evidence over its predictive error. Below two the rows, or f_S, say too little to tell.
    level : float
    ratio : float
        How much the unstable features together still say: 1 as expected, 0 nothing, -1 the opposite.
    value : float
        Blind evidence here, in nats.
    own : dict
        The same in each own domain.
    features : tuple of FeatureChange
    changed : tuple of str
        The features that the change is put down to.
    """

    verdict: Verdict
    p_value: float
    power: float
    level: float
    ratio: float
    value: float
    own: dict[str, float]
    features: tuple[FeatureChange, ...]
    changed: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def __str__(self) -> str:
        words = {
            "unchanged": f"The unstable features speak as in your own {len(self.own)} domains",
            "changed": f"Meaning changed: {', '.join(self.changed)}",
            "cannot tell": "Cannot tell whether a meaning changed",
        }
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        lines = [f"{words[self.verdict]} ({p}, power {self.power:.1f})."]
        for feature in sorted(self.features, key=lambda f: f.p_value):
            mark = "*" if feature.name in self.changed else " "
            lines.append(
                f"{mark} {feature.name:<20} {100 * feature.ratio:>5.0f} % of its meaning left, "
                f"p = {feature.p_value:.3f}"
            )
        return "\n".join(lines)
