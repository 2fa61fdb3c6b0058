"""Options that belong together as one parameter of a command: a dataclass whose fields are options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

Command = TypeVar("Command", bound=Callable[..., Any])


def spread(command: Command) -> Command:
    """Show typer the fields of every group that the command takes; hand the group itself to the command.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int
    ...     height: int = 2
    >>> def area(size: Size) -> int:
    ...     return size.width * size.height
    >>> spread(area)(width=3, height=2), list(inspect.signature(spread(area)).parameters)
    (6, ['width', 'height'])
    """
    asked = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: part.annotation for name, part in asked.items() if is_dataclass(part.annotation)
    }
    if not groups:
        return command
    shown = [
        part.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, own in asked.items()
        for part in (_parameters(groups[name]) if name in groups else (own,))
    ]

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**given, **made)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {part.name: part.annotation for part in shown}
    return run  # type: ignore[return-value]


def _parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
