"""What every picture is drawn on: a figure of its own, not pyplot's, so that nothing global is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(size: tuple[float, float] | None = None) -> Figure:
    """An empty figure of this width and height, in inches, or of matplotlib's; its parts keep apart."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Drawing needs matplotlib, which is not installed: pip install 'sfboost[app]'."
        ) from error
    return Figure(figsize=size, layout="constrained")
