"""Turbofan engines run to failure (NASA C-MAPSS). The label: does one fail within sixty cycles.

FD001 is the source, dealt into four fleets by engine number: there the compressor wears out. FD003 is the
target: in some of its engines the fan does, and half of the sensors then move the other way.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfboost.datasets.contract import Dataset, Domain
from sfboost_lab.datasets.sources import MissingDataError, explain_missing, locate

if TYPE_CHECKING:
    import pandas as pd

CITATION = (
    "A. Saxena et al. (2008), Damage Propagation Modeling for Aircraft Engine Run-to-Failure Simulation, "
    "International Conference on Prognostics and Health Management; NASA C-MAPSS, FD001 and FD003"
)
LICENCE = "work of the US government"
#: Written down with both fleets in view: sensors that move one way before every failure, and all others.
STABLE = ("s2", "s3", "s4", "s8", "s11", "s13", "s17")
UNSTABLE = ("s7", "s12", "s15", "s20", "s21", "s9", "s14")
#: The original has all 200 engines of both fleets, the table 149 of them.
CANDIDATES = (
    *("tables/engines/CMAPSSData.zip", "CMAPSSData.zip", "tables/engines/CMAPSSData", "CMAPSSData"),
    *("tables/engines/engines.csv.gz", "tables/engines/engines.csv"),
)
_FLEETS, _NEAR = 4, 60
#: Unit, cycle, three settings, sensors 1 to 21.
_ORIGINAL = ("unit", "t", "a", "b", "c", *(f"s{k}" for k in range(1, 22)))
_MOST_BYTES = 2**26


def engines(
    *, by: str = "fleet", source: str | None = None, random_state: int = 0, data_dir: Path | None = None
) -> Dataset:
    """Return the engines: rows are cycles, and an engine's rows come in series (``facts["engine"]``).

    Parameters
    ----------
    by : {"fleet", "engine", "fault"}
        What a target domain is: the whole of FD003; each engine of it; or its engines by what fails. The
        last is read off the end of life, which nobody knows in time: an ORACLE split.
    source : path, optional
        NASA's archive as it is, the folder of its text files, or the smaller table; by default what the data
        folder has of them, in this order. The smaller table's name ends in "subset".
    random_state : int
        Not used: nothing is drawn.
    data_dir : Path, optional
        Folder with ``tables/engines/CMAPSSData.zip`` or ``tables/engines/engines.csv``, plain or ``.gz``.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("engines").test  # doctest: +SKIP
    ('FD003',)
    """
    if by not in ("fleet", "engine", "fault"):
        raise ValueError(f"Got by={by!r}; the new domains are by fleet, by engine or by fault.")
    path = Path(source) if source else locate(CANDIDATES, data_dir)
    if path is None or not path.exists():
        raise MissingDataError(explain_missing([str(path)] if path else CANDIDATES[::5], data_dir))
    whole = path.is_dir() or path.suffix == ".zip"
    rows = _original(path) if whole else _subset(path)
    trained = rows["fleet"] == "FD001"
    where = rows["fleet"].where(~trained, "FD001-" + (rows["unit"] % _FLEETS).astype(str))
    if by == "engine":
        where = where.where(trained, "FD003-" + rows["unit"].astype(str).str.zfill(3))
    elif by == "fault":
        where = where.where(trained, "FD003-" + rows.groupby(["fleet", "unit"])["s7"].transform(_fault))
    names = sorted(where.unique())
    return Dataset(
        name="engines" if whole else "engines-subset",
        domains=tuple(_domain(name, rows[where == name]) for name in names),
        train=tuple(name for name in names if name.startswith("FD001-")),
        test=tuple(name for name in names if not name.startswith("FD001-")),
        classes=("later", "soon"),
        stable_features=list(range(len(STABLE))),
        unstable_features=list(range(len(STABLE), len(STABLE) + len(UNSTABLE))),
        feature_names=[*STABLE, *UNSTABLE],
        citation=CITATION,
        licence=LICENCE,
    )


def _domain(name: str, rows: pd.DataFrame) -> Domain:
    left = rows.groupby(["fleet", "unit"])["t"].transform("max") - rows["t"]
    X = rows[[*STABLE, *UNSTABLE]].to_numpy(dtype=np.float64)
    return Domain(name, X, (left < _NEAR).to_numpy(dtype=np.int64), {"engine": rows["unit"].to_numpy()})


def _fault(pressure: pd.Series[Any]) -> str:
    """What wears out: the pressure behind the compressor (s7) falls with it, and rises where the fan does."""
    return "fan" if pressure.tail(20).mean() > pressure.head(50).mean() else "compressor"


def _subset(path: Path) -> pd.DataFrame:
    import pandas as pd

    rows = pd.read_csv(path)
    missing = sorted({"domain", "unit", "t", *STABLE, *UNSTABLE} - set(rows.columns))
    if missing:
        raise ValueError(f"{path} has no column {missing}; it has {list(rows.columns)}. Get the file again.")
    return rows.assign(fleet=rows["domain"].str[:5])


def _original(path: Path) -> pd.DataFrame:
    import pandas as pd

    found = dict(_texts(path))
    missing = [name for name in ("train_FD001.txt", "train_FD003.txt") if name not in found]
    if missing:
        raise ValueError(f"{path} has no {' and no '.join(missing)}; get NASA's CMAPSSData.zip again.")
    parts = []
    for name, text in sorted(found.items()):
        rows = pd.read_csv(io.BytesIO(text), sep=r"\s+", header=None)
        if rows.shape[1] != len(_ORIGINAL):
            raise ValueError(f"{name} of {path} has {rows.shape[1]} columns; {len(_ORIGINAL)} are needed.")
        parts.append(rows.set_axis(list(_ORIGINAL), axis=1).assign(fleet=name[6:11]))
    return pd.concat(parts, ignore_index=True)


def _texts(path: Path) -> Iterator[tuple[str, bytes]]:
    """The two files of a folder or archive; NASA's newer archive holds the older one."""
    wanted = ("train_FD001.txt", "train_FD003.txt")
    if path.is_dir():
        yield from ((name, (path / name).read_bytes()) for name in wanted if (path / name).is_file())
        return
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        inner = [member for member in members if Path(member.filename).name == "CMAPSSData.zip"]
        if inner:
            archive = zipfile.ZipFile(io.BytesIO(_bounded(archive, inner[0])))  # noqa: PLW2901
        for member in archive.infolist():
            name = Path(member.filename).name
            if name in wanted:
                yield name, _bounded(archive, member)


def _bounded(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.file_size > _MOST_BYTES:
        raise ValueError(f"{member.filename} unpacks to {member.file_size} bytes; {_MOST_BYTES} are plenty.")
    return archive.read(member)
