"""Pictures of a fitted `SFBClassifier`: what the search tried, how its networks trained (matplotlib)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sfboost.figures import new_figure

if TYPE_CHECKING:
    from sfboost.torch.classifier import SFBClassifier


def plot_search(model: SFBClassifier, ax: Any = None) -> Any:
    """Draw the risk of every candidate on rows on which the first guess says nothing; return the axes.

    The best few are learned on every fold, and only these are compared in the end: others are hollow.

    Parameters
    ----------
    model : SFBClassifier
        Fitted with a search.
    ax : matplotlib axes, optional
    """
    if model.search_ is None:
        raise ValueError("This model was trained without a search: fit it with the default plan.")
    lines = sorted(model.search_, key=lambda line: -float(line["risk"]))
    ax = new_figure().add_subplot() if ax is None else ax
    most = max(line["folds"] for line in lines)
    kinds = {
        "chosen": ("tab:orange", "tab:orange", lambda line: line["chosen"]),
        f"{most} folds": ("tab:blue", "tab:blue", lambda line: line["folds"] == most and not line["chosen"]),
        "fewer folds": ("none", "tab:blue", lambda line: line["folds"] < most and not line["chosen"]),
    }
    for name, (inside, edge, fits) in kinds.items():
        places = [place for place, line in enumerate(lines) if fits(line)]
        if places:
            risks = [lines[place]["risk"] for place in places]
            ax.scatter(risks, places, facecolors=inside, edgecolors=edge, label=name)
    ax.legend()
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
    ax = new_figure().add_subplot() if ax is None else ax
    runs: dict[tuple[str, int], list[float]] = {}
    for row in model.history_:
        runs.setdefault((row["stage"], row.get("fold", 0)), []).append(row["total"])
    stages = list(dict.fromkeys(stage for stage, _ in runs))
    for (stage, fold), losses in runs.items():
        first = fold == min(other for name, other in runs if name == stage)
        steps, colour = np.arange(1, len(losses) + 1), f"C{stages.index(stage)}"
        ax.plot(steps, losses, color=colour, label=stage if first else None)
    ax.set_xlabel("step")
    ax.set_ylabel("loss")
    ax.legend()
    return ax
