"""eICU demo: stays in intensive care, by region or by hospital; does the patient die in hospital."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sfboost.datasets.contract import Dataset
from sfboost_lab.datasets.known_split import SplitTable, read_rows
from sfboost_lab.datasets.sources import File

if TYPE_CHECKING:
    import pandas as pd


def _file(name: str, size: int, sha256: str) -> File:
    return File(f"tables/eicu_demo/{name}.csv", sha256, size)


FILES = {
    "results": _file(
        "apachePatientResult", 634_921, "8fd642e8949a955fe378abc711308d468ac5a9ba0b323082bb64a47cf3877829"
    ),
    "patients": _file("patient", 605_609, "2ba8fc9b193cb26b74188362ab76f7a4b69a5094ac62a080595fa844d7f0f3a0"),
    "hospitals": _file("hospital", 3_655, "19512f8e5c0625d3bf398b6583877f7e72692f5dedb83dee2e6e8214abbe58ec"),
    "physiology": _file(
        "apacheApsVar", 202_893, "be3eca4352c898c1e6c8f3482a9e1d81229614db7f3e8ac8d35523dd592e8107"
    ),
    "history": _file(
        "apachePredVar", 286_774, "77fd9b357b27363ee395a9aaf787e07543d7aba0108596616263444307806155"
    ),
}
_STAY = "patientunitstayid"
_SEEN = ("eyes", "motor", "verbal", "temperature", "respiratoryrate", "heartrate", "meanbp")
_ILLNESSES = ("metastaticcancer", "cirrhosis", "hepaticfailure", "immunosuppression", "diabetes")
_DONE = ("intubated", "vent", "dialysis")
_MEASURED = ("urine", "wbc", "sodium", "hematocrit", "creatinine", "bun", "glucose")
#: The person, the illnesses, what is seen at the bedside; against where the bed stands, what was done, and
#: what a laboratory measured if somebody asked it to. Values missing in more than 60 % of stays are left out.
SPLIT = SplitTable(
    name="eicu",
    target="died",
    domain="region",
    stable=("age", "gender", *_SEEN, *_ILLNESSES),
    unstable=("unittype", "unitadmitsource", *_DONE, *_MEASURED),
    citation=(
        "T. J. Pollard et al. (2018), The eICU Collaborative Research Database, Scientific Data 5; "
        "the demo on PhysioNet"
    ),
    licence="ODbL",
)


def eicu(
    *,
    by: str = "region",
    test: str = "",
    encoded: bool = False,
    random_state: int = 0,
    data_dir: Path | None = None,
) -> Dataset:
    """Return the stays of the eICU demo that have an APACHE score: death in hospital.

    Parameters
    ----------
    by : {"region", "hospital"}
        Four regions (stays in hospitals whose region is not known are left out), or 174 hospitals.
    test : str
        The domain that is left out; by default the first.
    encoded : bool
        Numbers by the default pipeline, in place of the table.
    random_state : int
        Not used: nothing is drawn.
    data_dir : Path, optional
        Folder with ``tables/eicu_demo/patient.csv`` and so on, plain or ``.gz``.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> sorted(load("eicu").domain_names)  # doctest: +SKIP
    ['Midwest', 'Northeast', 'South', 'West']
    """
    if by not in ("region", "hospital"):
        raise ValueError(f"Got by={by!r}; the domains are by region or by hospital.")
    rows = _stays(data_dir).rename(columns={"hospitalid": "hospital"}).dropna(subset=[by])
    table = replace(SPLIT, domain=by)
    return table.dataset(rows, test or str(rows[by].iloc[0]), encoded=encoded)


def _stays(data_dir: Path | None) -> pd.DataFrame:
    """One row per stay with a score; -1 is APACHE's word for a value that nobody took."""
    scored = read_rows(FILES["results"], data_dir, (_STAY, "apacheversion", "actualhospitalmortality"))
    scored = scored[scored["apacheversion"] == "IVa"]
    patient = ("hospitalid", "gender", "age", "unittype", "unitadmitsource")
    physiology = read_rows(FILES["physiology"], data_dir, (_STAY, *_SEEN, *_DONE, *_MEASURED))
    rows = scored.merge(read_rows(FILES["patients"], data_dir, (_STAY, *patient)), on=_STAY)
    rows = rows.merge(read_rows(FILES["hospitals"], data_dir, ("hospitalid", "region")), on="hospitalid")
    rows = rows.merge(physiology.mask(physiology == -1), on=_STAY)
    rows = rows.merge(read_rows(FILES["history"], data_dir, (_STAY, *_ILLNESSES)), on=_STAY)
    age = rows["age"].replace("> 89", "90").astype(float)
    died = (rows["actualhospitalmortality"] == "EXPIRED").map({False: "no", True: "yes"})
    return rows.assign(age=age, died=died)
