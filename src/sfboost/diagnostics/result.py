"""What a check says: a statistic, its uncertainty, a verdict, a sentence and a remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sfboost.json_values import json_values

Verdict = Literal["holds", "doubtful", "violated", "cannot tell"]

#: From reassuring to alarming; "cannot tell" is neither, and is not a pass.
VERDICTS: tuple[Verdict, ...] = ("holds", "cannot tell", "doubtful", "violated")


#: An effect this many times smaller than what matters is none, whatever the test says.
_NEGLIGIBLE = 5.0


def judge(p_value: float, size: float, *, level: float, matters: float) -> Verdict:
    """The verdict of a test *and* an effect size: with enough rows a test alone rejects everything.

    Examples
    --------
    >>> [judge(1e-9, size, level=0.05, matters=0.1) for size in (0.0001, 0.05, 0.5)]
    ['holds', 'doubtful', 'violated']
    >>> judge(0.2, 0.5, level=0.05, matters=0.1)
    'holds'
    """
    if p_value >= level or size <= matters / _NEGLIGIBLE:
        return "holds"
    return "violated" if size > matters else "doubtful"


def p_in_words(p_value: float) -> str:
    """A p-value as sentences say it: none is zero.

    Examples
    --------
    >>> p_in_words(0.0421), p_in_words(0.0)
    ('p = 0.042', 'p < 0.001')
    """
    told = p_in_cells(p_value)
    return f"p {told}" if told.startswith("<") else f"p = {told}"


def p_in_cells(p_value: float | None) -> str:
    """A p-value as tables show it below their "p"; a dash where it is not known.

    Examples
    --------
    >>> p_in_cells(0.0421), p_in_cells(0.0), p_in_cells(None)
    ('0.042', '< 0.001', '–')
    """
    if p_value is None or p_value != p_value:
        return "–"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check. Prints as a line.

    Attributes
    ----------
    check : str
        Its name in `CHECKS`.
    verdict : {"holds", "doubtful", "violated", "cannot tell"}
    statistic : float or None
        What was measured, in the units that the sentence names.
    standard_error : float or None
    p_value : float or None
        Of the hypothesis that the assumption holds; None where nothing is tested.
    sentence : str
        What was found.
    remedy : str
        What to do about it; empty where nothing needs to be done.
    details : mapping
        Numbers behind the verdict, by name; per-domain ones as mappings. "by_domain" is the statistic in
        each training domain, where there is one.

    Examples
    --------
    >>> print(CheckResult("informativeness", "holds", "It tells the class.", statistic=0.1))
    informativeness              holds        It tells the class.
    """

    check: str
    verdict: Verdict
    sentence: str
    remedy: str = ""
    statistic: float | None = None
    standard_error: float | None = None
    p_value: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        text = f"{self.check:<28} {self.verdict:<12} {self.sentence}"
        return f"{text} Remedy: {self.remedy}" if self.remedy else text

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return vars(self) | {"details": json_values(self.details, finite=False)}
