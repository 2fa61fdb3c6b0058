"""Camelyon17 in the WILDS layout: patches of tissue from five hospitals, with or without tumour."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sfboost.datasets.contract import Dataset, Domain
from sfboost.datasets.images import ImageSequence
from sfboost_lab.datasets.archives import unpacked
from sfboost_lab.datasets.sources import MissingDataError, explain_missing, locate

if TYPE_CHECKING:
    import pandas as pd

CITATION = (
    "P. Bandi et al. (2018), From detection of individual metastases to classification of lymph node status, "
    "IEEE TMI 38(2); splits of P. W. Koh et al. (2021), WILDS, ICML"
)
LICENCE = "CC0 1.0"
CANDIDATES = ("camelyon17_v1.0", "camelyon17", "camelyon17_v1.0.tar.gz", "camelyon17_v1.0.tar")
COLUMNS = ("patient", "node", "x_coord", "y_coord", "tumor", "slide", "center", "split")

_VALIDATE_HOSPITAL, _TEST_HOSPITAL = 1, 2
_TRAIN_SPLIT = 0


def camelyon17(
    *,
    size: int | None = None,
    root: str | Path | None = None,
    random_state: int = 0,
    data_dir: Path | None = None,
) -> Dataset:
    """Return Camelyon17 with the official splits of WILDS.

    Hospitals 0, 3 and 4 train, hospital 1 validates, hospital 2 tests. The held-out slides of the training
    hospitals are the domains ``hospital-0-held-out`` and so on; they have no role.

    Parameters
    ----------
    size : int, optional
        What patches (96x96) are resized to when decoded.
    root : path, optional
        The folder with ``metadata.csv`` and ``patches/``; by default ``camelyon17_v1.0/`` in the data folder.
    random_state : int
        Not used: nothing is drawn.
    data_dir : Path, optional
        The data folder.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("camelyon17").train  # doctest: +SKIP
    ('hospital-0', 'hospital-3', 'hospital-4')
    """
    folder = _folder(root, data_dir)
    metadata = _metadata(folder / "metadata.csv")
    patches = ImageSequence(folder, _patch_names(metadata))
    tumor = metadata["tumor"].to_numpy(dtype=np.int64)
    center, split = metadata["center"].to_numpy(), metadata["split"].to_numpy()
    domains, train = [], []
    for hospital in np.unique(center):
        name = f"hospital-{hospital}"
        if hospital in (_VALIDATE_HOSPITAL, _TEST_HOSPITAL):
            parts = {name: center == hospital}
        else:
            train.append(name)
            first = split == _TRAIN_SPLIT
            parts = {
                name: (center == hospital) & first,
                f"{name}-held-out": (center == hospital) & ~first,
            }
        for part, chosen in parts.items():
            rows = np.flatnonzero(chosen)
            pictures = patches[rows]
            domains.append(Domain(part, pictures.resized(size) if size else pictures, tumor[rows]))
    return Dataset(
        name="camelyon17",
        domains=tuple(domains),
        train=tuple(train),
        validate=(f"hospital-{_VALIDATE_HOSPITAL}",),
        test=(f"hospital-{_TEST_HOSPITAL}",),
        classes=("no tumour", "tumour"),
        citation=CITATION,
        licence=LICENCE,
    )


def _folder(root: str | Path | None, data_dir: Path | None) -> Path:
    found = Path(root) if root is not None else locate(CANDIDATES, data_dir)
    if found is None:
        raise MissingDataError(explain_missing(CANDIDATES[:1], data_dir))
    if found.is_file():
        found = unpacked(found)
        # The archive of WILDS has no top folder, but a home-made one may.
        inner = [path.parent for path in found.glob("*/metadata.csv")]
        found = inner[0] if inner else found
    if not (found / "metadata.csv").is_file():
        raise MissingDataError(
            f"{found} has no metadata.csv; name the folder of WILDS that holds metadata.csv and patches/."
        )
    return found


def _metadata(path: Path) -> pd.DataFrame:
    import pandas as pd

    # Patients are written with leading zeros, which are part of the names of the folders.
    table = pd.read_csv(path, index_col=0, dtype={"patient": str})
    missing = [column for column in COLUMNS if column not in table.columns]
    if missing:
        raise ValueError(f"{path} has no column {missing}; the metadata of WILDS has {', '.join(COLUMNS)}.")
    return table


def _patch_names(metadata: pd.DataFrame) -> list[str]:
    places = metadata[["patient", "node", "x_coord", "y_coord"]].itertuples(index=False, name=None)
    return [
        f"patches/patient_{patient}_node_{node}/patch_patient_{patient}_node_{node}_x_{x}_y_{y}.png"
        for patient, node, x, y in places
    ]
