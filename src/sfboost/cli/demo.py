"""`sfboost demo`: coloured digits, where the colour says something else in the target domain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

from sfboost.boosting import StableFeatureBoosting
from sfboost.boosting.evaluation import compare_on_domain
from sfboost.boosting.scored_domains import ANSWER
from sfboost.cli.console import Voice, say, screen, speaking
from sfboost.datasets import colored_digits
from sfboost.figures import new_figure
from sfboost.frames.writing import whole_output

#: Method, what the table calls it, and how the figure draws it.
METHODS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("pooled", "pooled", {"color": "#b2182b", "marker": "s"}),
    ("stable", "stable", {"color": "#777777", "marker": "o"}),
    (ANSWER, "answer", {"color": "#2166ac", "marker": "D", "linewidth": 2.5}),
    ("labelled", "labelled (ORACLE)", {"color": "#1b7837", "linestyle": "--"}),
)
_HEADLINE = 0.1


@speaking
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("sfboost-demo"),
    repeats: Annotated[int, typer.Option(min=1, help="Splits and colourings to average over.")] = 4,
) -> None:
    """Adapt to coloured digits whose colour shifts; a table and a figure.

    Digits below 5 against the others, with 25 % of the labels flipped, coloured so that the colour agrees
    with the label: in 90 and 80 % of the training rows, and from 100 down to 0 % in the target domain.
    """
    say(
        "Real handwritten digits, coloured. In training the colour agrees with the label in 90 % and 80 % of "
        "the rows; in the target domain in 100 % down to 0 %. No label of it is used, except by the "
        "last column. A quarter of the labels is flipped: shape alone cannot be right more than 75 % of the "
        "time.",
        "",
    )
    with Voice().waiting("Training and adapting"):
        accuracy = run(repeats)
    screen().print(make_table(accuracy))
    figure = draw(accuracy, out / "demo.png")
    row = accuracy[_HEADLINE]
    told = (
        f"At agreement {_HEADLINE} the colour says the opposite of what it said in training: the pooled "
        f"classifier is right in {row['pooled']:.0f} % of the rows, the stable one in {row['stable']:.0f} %, "
        "the answer in "
    )
    say(
        "",
        (told, (f"{row[ANSWER]:.0f} %", "bold"), f"; with labels it would be {row['labelled']:.0f} %."),
        f"Figure: {figure}",
    )


def run(repeats: int) -> dict[float, dict[str, float]]:
    """Accuracy in percent by agreement and method, averaged over `repeats` splits and colourings."""
    every = [run_once(seed) for seed in range(repeats)]
    return {
        agreement: {method: float(np.mean([one[agreement][method] for one in every])) for method in scores}
        for agreement, scores in every[0].items()
    }


def run_once(seed: int) -> dict[float, dict[str, float]]:
    """One split and colouring: fit on the two source domains, then meet eleven target domains."""
    dataset = colored_digits(view="table", random_state=seed, n_validate=0, n_test=797)
    X, y, sample_domain = dataset.pooled("train")
    forest = RandomForestClassifier(60, min_samples_leaf=4, random_state=seed)
    model = StableFeatureBoosting(
        stable_features=dataset.stable_features, unstable_features=dataset.unstable_features, stable=forest
    )
    model.fit(X, y, sample_domain=sample_domain)
    result = {}
    for name in dataset.test:
        scores = compare_on_domain(model, *dataset.xy(name)).scores
        agreement = dataset.domain(name).agreement
        assert agreement is not None  # every test domain of this data set states it
        result[agreement] = {method: 100 * scores[method]["accuracy"] for method, _, _ in METHODS}
    return result


def make_table(accuracy: dict[float, dict[str, float]]) -> Table:
    """One row per agreement; the two that training saw are marked."""
    table = Table(title="Accuracy in % by agreement of colour and label in the target domain")
    table.add_column("agreement", justify="right")
    for method, title, _ in METHODS:
        table.add_column(title, justify="right", style="bold" if method == ANSWER else "")
    for agreement, row in accuracy.items():
        seen = " (as in training)" if agreement in (0.9, 0.8) else ""
        table.add_row(f"{agreement:.1f}{seen}", *(f"{row[method]:.1f}" for method, _, _ in METHODS))
    table.add_section()
    mean = {method: np.mean([row[method] for row in accuracy.values()]) for method, _, _ in METHODS}
    worst = {method: min(row[method] for row in accuracy.values()) for method, _, _ in METHODS}
    for title, values in (("mean", mean), ("worst", worst)):
        table.add_row(title, *(f"{values[method]:.1f}" for method, _, _ in METHODS))
    return table


def draw(accuracy: dict[float, dict[str, float]], path: Path) -> Path:
    """The curves over the eleven agreements, as a PNG."""
    figure = new_figure((8, 5))
    axes: Any = figure.subplots()
    agreements = list(accuracy)
    for method, title, style in METHODS:
        axes.plot(agreements, [accuracy[a][method] for a in agreements], label=title, **style)
    axes.legend(loc="lower left")
    axes.axvspan(0.79, 0.91, color="#eeeeee", zorder=0)
    axes.text(0.85, 40, "training", ha="center", color="#777777")
    axes.invert_xaxis()
    axes.set(
        xlabel="agreement of colour and label in the target domain",
        ylabel="accuracy (%)",
        title="Coloured digits: a target domain without labels",
        ylim=(0, 102),
    )
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    with whole_output(path) as part:
        figure.savefig(part, dpi=150)
    return path
