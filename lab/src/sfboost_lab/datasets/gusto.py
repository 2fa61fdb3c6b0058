"""GUSTO-I: sixteen regions of a trial on heart attacks. The label is death within 30 days."""

from __future__ import annotations

from pathlib import Path

from sfboost.datasets.contract import Dataset
from sfboost_lab.datasets.known_split import SplitTable, read_rows
from sfboost_lab.datasets.sources import File

FILES = (
    File(
        "tables/gusto/gusto.csv",
        "5a96c74ab43305fcaabd94a645e02c8b901c40321112e196295a64867a9b4b20",
        3_814_849,
    ),
)
#: Who the patient is, and what the history says; against what was found and judged on the day.
SPLIT = SplitTable(
    name="gusto",
    target="day30",
    domain="regl",
    stable=("age", "sex", "height", "weight", "pmi", "htn", "smk", "prevcvd", "prevcabg", "fam"),
    unstable=("Killip", "sysbp", "pulse", "hyp", "hrt", "ttr", "ste", "miloc", "sho"),
    citation=(
        "The GUSTO Investigators (1993), An international randomized trial comparing four thrombolytic "
        "strategies for acute myocardial infarction, New England Journal of Medicine 329(10)"
    ),
    licence="none is stated with the table",
)


def gusto(
    *, test: str = "1", encoded: bool = False, random_state: int = 0, data_dir: Path | None = None
) -> Dataset:
    """Return GUSTO-I: death within 30 days, regions as domains.

    Parameters
    ----------
    test : str
        The region that is left out, "1" to "16".
    encoded : bool
        Numbers by the default pipeline, in place of the table.
    random_state : int
        Not used: nothing is drawn.
    data_dir : Path, optional
        Folder with ``tables/gusto/gusto.csv``, plain or ``.gz``.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> len(load("gusto").domains)  # doctest: +SKIP
    16
    """
    return SPLIT.dataset(read_rows(FILES[0], data_dir, SPLIT.columns), test, encoded=encoded)
