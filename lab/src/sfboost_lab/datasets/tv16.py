"""TV16: a survey before the election of 2016 in the United States, by state. The label is the vote."""

from __future__ import annotations

from pathlib import Path

from sfboost.datasets.contract import Dataset
from sfboost_lab.datasets.known_split import SplitTable, read_rows
from sfboost_lab.datasets.sources import File

FILES = (
    File(
        "tables/tv16/tv16.csv", "79b3622e112c57ca880e55d27a53b08b1f2cfa182013b67a3543f42578a109e4", 6_275_625
    ),
)
#: Who a person is and how religious; against party and opinions, whose meaning differs by place and year.
SPLIT = SplitTable(
    name="tv16",
    target="votetrump",
    domain="state",
    stable=(
        *("age", "female", "collegeed", "racef", "famincr"),
        *("bornagain", "religimp", "churchatd", "prayerfreq"),
    ),
    unstable=("ideo", "pid7na", "angryracism", "whiteadv", "fearraces", "racerare"),
    citation=(
        "S. Ansolabehere and B. F. Schaffner (2017), Cooperative Congressional Election Study 2016, as TV16 "
        "in the R package stevedata"
    ),
    licence="none is stated with the table",
)


def tv16(
    *,
    test: str = "California",
    states: int = 12,
    encoded: bool = False,
    random_state: int = 0,
    data_dir: Path | None = None,
) -> Dataset:
    """Return TV16: a vote for Trump, states as domains.

    Parameters
    ----------
    test : str
        The state that is left out.
    states : int
        How many, those with the most rows.
    encoded : bool
        Numbers by the default pipeline, in place of the table.
    random_state : int
        Not used: nothing is drawn.
    data_dir : Path, optional
        Folder with ``tables/tv16/tv16.csv``, plain or ``.gz``.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("tv16", states=3).domain_names  # doctest: +SKIP
    ('California', 'Florida', 'Texas')
    """
    rows = read_rows(FILES[0], data_dir, SPLIT.columns)
    sizes = rows["state"].value_counts(sort=False).sort_values(ascending=False, kind="stable")
    largest = list(sizes.index[:states])
    kept = rows[rows["state"].isin(largest)].sort_values(
        "state", key=lambda state: state.map(largest.index), kind="stable"
    )
    return SPLIT.dataset(kept, test, encoded=encoded)
