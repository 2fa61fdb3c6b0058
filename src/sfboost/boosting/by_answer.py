"""Values by answer: one word for what is given, whichever it is."""

from __future__ import annotations

from typing import TypeVar

from sfboost.notices import warn

#: What is given; "adapted" is one of the decisions about it.
ANSWER = "answer"
_BEFORE = "adapted"
Value = TypeVar("Value")


class ByAnswer(dict[str, Value]):
    """A dict whose key "answer" is also found under the name that it had before, with a warning.

    Examples
    --------
    >>> ByAnswer(stable=0.7, answer=0.8)["answer"]
    0.8
    """

    def __missing__(self, key: str) -> Value:
        if key != _BEFORE or ANSWER not in self:
            raise KeyError(key)
        warn(
            f"{_BEFORE!r} is called {ANSWER!r} now, and will not be found in the next version.", FutureWarning
        )
        return self[ANSWER]
