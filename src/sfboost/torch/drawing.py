"""Pictures of a fitted `SFBClassifier`: what the search tried, how its networks trained (matplotlib)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sfboost.torch.classifier import SFBClassifier


def plot_search(model: SFBClassifier, ax: Any = None) -> Any:
    """Draw the risk of every candidate on rows on which the first guess says nothing; return the axes.

    Parameters
    ----------
    model : SFBClassifier
        Fitted with a search.
    ax : matplotlib axes, optional
    """
    if model.search_ is None:
        raise ValueError("This model was trained without a search: fit it with the default plan.")
    lines = sorted(model.search_, key=lambda line: -float(line["risk"]))
    ax = _axes(ax)
    colours = ["tab:orange" if line["chosen"] else "tab:blue" for line in lines]
    ax.scatter([line["risk"] for line in lines], range(len(lines)), c=colours)
    ax.set_yticks(range(len(lines)), [line["candidate"] for line in lines])
    ax.set_xlabel("log loss where the first guess says nothing")
    return ax


def plot_history(model: SFBClassifier, ax: Any = None) -> Any:
    """Draw the total loss over the steps, a line for each stage (and fold); return the axes.

    Parameters
    ----------
    model : SFBClassifier
        Fitted.
    ax : matplotlib axes, optional
    """
    ax = _axes(ax)
    runs: dict[tuple[str, int], list[float]] = {}
    for row in model.history_:
        runs.setdefault((row["stage"], row.get("fold", 0)), []).append(row["total"])
    for (stage, fold), losses in runs.items():
        ax.plot(np.arange(1, len(losses) + 1), losses, label=stage if fold == 0 else None)
    ax.set_xlabel("step")
    ax.set_ylabel("loss")
    ax.legend()
    return ax


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(layout="constrained").subplots()
