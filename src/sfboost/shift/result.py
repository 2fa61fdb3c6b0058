"""What the test says: `Change`, overall and by feature."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sfboost.diagnostics.result import p_in_words

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
    left : float
        How much of its meaning is left, in expectation: 1 all, 0 nothing, -1 the opposite.
    same : float
        Probability that it means what it meant, given that some feature does not.
    rescaled : bool
        Whether its spread is unlike that of every source domain, as after a change of unit.
    importance : float
        Its share in what all unstable features say.
    """

    name: str
    columns: tuple[int, ...]
    p_value: float
    left: float
    same: float
    rescaled: bool
    importance: float

    @property
    def state(self) -> str:
        """What became of it: "same", "lost", "reversed", or "unit" where its spread moved and no more."""
        if self.left > 0.5:
            return "unit" if self.rescaled else "same"
        return "reversed" if self.left < -0.5 else "lost"


@dataclass(frozen=True)
class Change:
    """Whether the unstable features mean in the target domain what they meant in the source domains.

    Attributes
    ----------
    verdict : {"changed", "unchanged", "cannot tell"}
    p_value : float
        Of the target domain among the source domains, under whichever reading of stability makes it larger.
    power : float
        Expected evidence, or its expected slope on what X_S says of it, over its predictive error; the larger
        one. Below two the rows, or f_S, say too little to tell.
    level : float
    ratio : float
        How much the unstable features together still say: 1 as expected, 0 nothing, -1 the opposite.
    value : float
        Evidence here, without labels, in nats.
    own : dict
        The same in each source domain.
    features : tuple of FeatureChange
    changed : tuple of str
        The features that the change is put down to.
    suspects : tuple of str
        The features that a change would be put down to, if there was one.
    n_rows : int
        Rows that were tested.
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
    suspects: tuple[str, ...]
    n_rows: int = 0

    @property
    def columns_left(self) -> tuple[list[int], list[float]]:
        """Columns of all features among the unstable ones, and what is left of each."""
        columns = [column for part in self.features for column in part.columns]
        return columns, [part.left for part in self.features for _ in part.columns]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def __str__(self) -> str:
        words = {
            "unchanged": f"The features go together as in your {len(self.own)} source domains",
            "changed": f"Meaning changed: {', '.join(self.changed)}",
            "cannot tell": "Cannot tell whether a meaning changed",
        }
        lines = [f"{words[self.verdict]} ({p_in_words(self.p_value)}, power {self.power:.1f})."]
        for feature in sorted(self.features, key=lambda f: f.p_value):
            mark = "*" if feature.name in self.changed else " "
            lines.append(
                f"{mark} {feature.name:<20} {100 * feature.left:>5.0f} % of its meaning left, "
                f"{p_in_words(feature.p_value)}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class Shift:
    """What moved in a target domain, by its rows without labels.

    Attributes
    ----------
    unstable : Change
        Of the unstable features.
    stable : Change or None
        Of the stable ones; None where nobody can ask them.
    side : {"nothing", "unstable", "stable"}
        Whose features a shift is put down to. Where both sides look shifted rows alone cannot tell for sure.
    shares : tuple of (class, share in training, share here), or None
        Where class shares moved.
    """

    unstable: Change
    stable: Change | None
    side: str
    shares: tuple[tuple[Any, float, float], ...] | None = None

    @property
    def verdict(self) -> str:
        """What moved: "nothing", "class shares", "unstable", "stable", or "cannot tell"."""
        if self.side != "nothing":
            return self.side
        if self.shares is not None:
            return "class shares"
        return "cannot tell" if self.unstable.verdict == "cannot tell" else "nothing"

    @property
    def undecided(self) -> bool:
        """Whether both sides look shifted: one shift makes the other side look so, too."""
        return all(
            change is not None and change.verdict == "changed" for change in (self.unstable, self.stable)
        )

    @property
    def p_value(self) -> float:
        """Of the side that the shift is put down to; of the unstable features where none is."""
        return (
            self.stable.p_value
            if self.side == "stable" and self.stable is not None
            else self.unstable.p_value
        )

    @property
    def features(self) -> dict[str, str]:
        """State of each feature that could be asked: "same", "unit", "lost" or "reversed"."""
        found = {}
        for change in (self.unstable, self.stable):
            for feature in () if change is None else change.features:
                shifted = change.verdict == "changed" and feature.name in change.changed  # type: ignore[union-attr]
                found[feature.name] = feature.state if shifted else "same"
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"verdict": self.verdict, "undecided": self.undecided}

    def __str__(self) -> str:
        told = [str(self.unstable)]
        if self.stable is not None:
            told.append(f"Stable features. {self.stable}")
        for name, before, after in self.shares or ():
            told.append(f"class {name}: {100 * before:.0f} % in training, about {100 * after:.0f} % here")
        return "\n".join(told)
