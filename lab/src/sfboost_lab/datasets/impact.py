"""IMPACT: fifteen studies of traumatic brain injury. The label is death within six months."""

from __future__ import annotations

from pathlib import Path

from sfboost.datasets.contract import Dataset
from sfboost_lab.datasets.known_split import SplitTable, read_rows
from sfboost_lab.datasets.sources import File

FILES = (
    File(
        "tables/impact/impact.csv",
        "ae6461db32396910ba7006fc6bf5326fc4e8cb02f07df2ed8bf4576c3e411c9e",
        385_880,
    ),
)
#: Age and the two signs that anyone can see; against what a scanner and a first hour have shown.
SPLIT = SplitTable(
    name="impact",
    target="mort",
    domain="name",
    stable=("age", "motor_score", "pupil"),
    unstable=("ct", "hypox", "hypots", "tsah", "edh"),
    citation=(
        "E. W. Steyerberg et al. (2008), Predicting outcome after traumatic brain injury, PLoS Medicine 5(8)"
    ),
    licence="none is stated with the table",
    codes=("motor_score",),  # "1/2", "3", "4", "5/6"
)


def impact(
    *, test: str = "TINT", encoded: bool = False, random_state: int = 0, data_dir: Path | None = None
) -> Dataset:
    """Return IMPACT: death within six months, studies as domains.

    Parameters
    ----------
    test : str
        The study that is left out, for example "TINT".
    encoded : bool
        Numbers by the default pipeline, in place of the table.
    random_state : int
        Not used: nothing is drawn.
    data_dir : Path, optional
        Folder with ``tables/impact/impact.csv``, plain or ``.gz``.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("impact", test="UK4").domain("UK4").X["pupil"].unique()  # doctest: +SKIP
    array(['Both', 'None', 'One'], dtype=object)
    """
    return SPLIT.dataset(read_rows(FILES[0], data_dir, SPLIT.columns), test, encoded=encoded)
