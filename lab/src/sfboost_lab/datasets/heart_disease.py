"""UCI heart disease: four hospitals, thirteen findings, many of them missing in some hospitals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sfboost.datasets.contract import Dataset
from sfboost_lab.datasets.own_tables import encode, from_table
from sfboost_lab.datasets.sources import File, fetch

CITATION = "A. Janosi, W. Steinbrunn, M. Pfisterer and R. Detrano (1988), Heart Disease, UCI"
LICENCE = "CC BY 4.0"

CODES = ("sex", "cp", "fbs", "restecg", "exang", "slope", "thal")
#: Written down by name before any result: the patient and the complaint; against what was tested and judged.
STABLE = ("age", "sex", "cp", "trestbps")
UNSTABLE = ("chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope", "ca", "thal")
COLUMNS = (
    *("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg"),
    *("thalach", "exang", "oldpeak", "slope", "ca", "thal", "num"),
)
_MIRROR = "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease/"


def _hospital(name: str, size: int, sha256: str) -> File:
    file = f"processed.{name}.data"
    return File(f"tables/heart_disease/{file}", sha256, size, (_MIRROR + file,))


FILES = {
    "cleveland": _hospital(
        "cleveland", 18_461, "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8"
    ),
    "hungary": _hospital(
        "hungarian", 10_263, "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796"
    ),
    "switzerland": _hospital(
        "switzerland", 4_109, "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314"
    ),
    "va": _hospital("va", 6_737, "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f"),
}


def heart_disease(
    *,
    test: str = "va",
    encoded: bool = False,
    stable_features: list[str] | None = None,
    unstable_features: list[str] | None = None,
    random_state: int = 0,
    data_dir: Path | None = None,
) -> Dataset:
    """Return heart disease: is any vessel narrowed (num > 0)? Hospitals are the domains.

    Parameters
    ----------
    test : {"cleveland", "hungary", "switzerland", "va"}
        The hospital that is left out.
    encoded : bool
        Numbers by the default pipeline, in place of the table.
    stable_features, unstable_features : list of str, optional
        Columns taken to be stable or unstable; by default `STABLE` and `UNSTABLE`.
    random_state : int
        Not used: nothing is drawn.
    data_dir : Path, optional
        Folder with ``tables/heart_disease/processed.cleveland.data`` and so on.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("heart_disease", test="hungary").train  # doctest: +SKIP
    ('cleveland', 'switzerland', 'va')
    """
    import pandas as pd

    tables = []
    for hospital, file in FILES.items():
        path = fetch(file, data_dir)
        table = pd.read_csv(path, header=None, na_values="?", dtype=float)
        if table.shape[1] != len(COLUMNS):
            raise ValueError(f"{path} has {table.shape[1]} columns, not {len(COLUMNS)}; get it again.")
        tables.append(table.set_axis(list(COLUMNS), axis=1).assign(hospital=hospital))
    rows = pd.concat(tables, ignore_index=True)
    if stable_features is None and unstable_features is None:
        stable_features, unstable_features = list(STABLE), list(UNSTABLE)
    # A cholesterol or blood pressure of 0 (all of Switzerland's cholesterol) was not measured.
    rows[["chol", "trestbps"]] = rows[["chol", "trestbps"]].mask(lambda values: values == 0)
    # Hospitals write the same code as 1 or 1.0: one category either way.
    rows[list(CODES)] = rows[list(CODES)].astype("Int64").astype("string")
    rows = rows.assign(sick=(rows["num"] > 0).map({False: "no", True: "yes"}))
    dataset = from_table(
        rows,
        target="sick",
        domain="hospital",
        test=test,
        stable_features=stable_features,
        unstable_features=unstable_features,
        drop=["num"],
        name="heart_disease",
    )
    dataset = replace(dataset, citation=CITATION, licence=LICENCE)
    return encode(dataset) if encoded else dataset
