"""What the tables with a written split share: rows of a CSV file, and the split put on them.

Which columns are stable was written down by the columns' names and meanings, before any result was seen. It
is a reader's assumption, as everyone's is: what belongs to the person or thing is called stable, what depends
on how, where and by whom it was measured or done is called unstable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sfboost.datasets.contract import Dataset
from sfboost_lab.datasets.own_tables import encode, from_table
from sfboost_lab.datasets.sources import File, fetch

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SplitTable:
    """A table whose columns have been called stable or unstable.

    Parameters
    ----------
    name, target, domain : str
        Of the data set, and of the columns that hold label and domain.
    stable, unstable : tuple of str
        Columns. Those that neither names are left out.
    citation, licence : str
    codes : tuple of str
        Columns of codes that may look like numbers in some domains.
    """

    name: str
    target: str
    domain: str
    stable: tuple[str, ...]
    unstable: tuple[str, ...]
    citation: str
    licence: str
    codes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is needed."""
        return (self.target, self.domain, *self.stable, *self.unstable)

    def dataset(self, rows: pd.DataFrame, test: str, *, encoded: bool) -> Dataset:
        """Return rows with these columns as a data set; one domain tests."""
        made = from_table(
            rows[list(self.columns)].astype(dict.fromkeys(self.codes, "category")),
            target=self.target,
            domain=self.domain,
            test=test,
            stable_features=self.stable,
            unstable_features=self.unstable,
            name=self.name,
        )
        made = replace(made, citation=self.citation, licence=self.licence)
        return encode(made) if encoded else made


def read_rows(file: File, data_dir: Path | None, columns: Sequence[str]) -> pd.DataFrame:
    """Return some columns of a CSV file. An empty cell is missing, any word (also "None") is a category."""
    import pandas as pd

    path = fetch(file, data_dir)
    rows = pd.read_csv(path, keep_default_na=False, na_values=[""])
    missing = [column for column in columns if column not in rows.columns]
    if missing:
        raise ValueError(f"{path} has no column {missing}; it has {list(rows.columns)}. Get the file again.")
    return rows[list(columns)]
