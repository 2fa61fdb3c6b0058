"""Wine quality: is a wine good (6 or better)? Red trains, white tests, or the other way round."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfboost.datasets.contract import Dataset, Domain
from sfboost_lab.datasets.sources import File, fetch

CITATION = "P. Cortez et al. (2009), Modeling wine preferences by data mining, Decision Support Systems 47(4)"
LICENCE = "CC BY 4.0"
FEATURES = (
    *("fixed_acidity", "volatile_acidity", "citric_acid", "residual_sugar", "chlorides"),
    *("free_sulfur_dioxide", "total_sulfur_dioxide", "density", "pH", "sulphates", "alcohol"),
)
#: Written down by name before any result: what is a fault or a merit in wine of any colour; all else belongs
#: to a colour's style or to how the cellar treats it.
STABLE = ("volatile_acidity", "chlorides", "alcohol")
FILES = {
    "red": File(
        "tables/wine_quality/winequality-red.csv",
        "c9614512e980f1cbd221c796daa97f00c4898c3cd1716863abac60f6cd1a522e",
        84_028,
    ),
    "white": File(
        "tables/wine_quality/winequality-white.csv",
        "659d419fff887f225bf977d20520bb64a64cae203e460087f809721d4430ba27",
        264_255,
    ),
}


def wine_quality(
    *, test: str = "white", good: int = 6, random_state: int = 0, data_dir: Path | None = None
) -> Dataset:
    """Return wine quality with the two colours as domains.

    Parameters
    ----------
    test : {"red", "white"}
        The colour that is left out.
    good : int
        The least quality (0 to 10) that counts as good.
    random_state : int
        Not used: nothing is drawn.
    data_dir : Path, optional
        Folder with ``tables/wine_quality/winequality-red.csv`` and so on, with or without a header line.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("wine_quality").domain("red").X.shape  # doctest: +SKIP
    (1599, 11)
    """
    domains = tuple(_domain(name, fetch(file, data_dir), good) for name, file in FILES.items())
    return Dataset(
        name="wine_quality",
        domains=domains,
        train=tuple(name for name in FILES if name != test),
        test=(test,),
        classes=("ordinary", "good"),
        stable_features=[FEATURES.index(name) for name in STABLE],
        unstable_features=[k for k, name in enumerate(FEATURES) if name not in STABLE],
        feature_names=list(FEATURES),
        citation=CITATION,
        licence=LICENCE,
    )


def _domain(name: str, path: Path, good: int) -> Domain:
    lines = path.read_text(encoding="utf-8").splitlines()
    separator = ";" if ";" in lines[0] else ","
    # The original files have a header line, other copies do not.
    has_header = any(letter.isalpha() for letter in lines[0])
    rows = np.array([line.split(separator) for line in lines[has_header:] if line], dtype=np.float64)
    if rows.shape[1] != len(FEATURES) + 1:
        raise ValueError(f"{path} has {rows.shape[1]} columns; {len(FEATURES)} and the quality are needed.")
    return Domain(name, rows[:, :-1], (rows[:, -1] >= good).astype(np.int64))
