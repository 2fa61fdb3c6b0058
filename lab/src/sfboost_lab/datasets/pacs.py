"""PACS: seven kinds of things as photos, paintings, cartoons and sketches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sfboost.datasets.contract import Dataset
from sfboost.datasets.images import image_folder
from sfboost_lab.datasets.archives import unpacked
from sfboost_lab.datasets.sources import MissingDataError, explain_missing, locate

CITATION = "D. Li et al. (2017), Deeper, Broader and Artier Domain Generalization, ICCV"
LICENCE = "for research; the authors state no licence"
# No mirror gives bytes whose hash we could vouch for, so the files are the user's to bring.
CANDIDATES = ("pacs", "PACS", "pacs160.tar", "pacs.tar", "PACS.tar", "pacs.zip", "PACS.zip")


def pacs(
    *,
    test: str = "sketch",
    size: int | None = None,
    root: str | Path | None = None,
    random_state: int = 0,
    data_dir: Path | None = None,
) -> Dataset:
    """Return PACS; one domain tests, the other three train, every picture of them.

    Parameters
    ----------
    test : {"art_painting", "cartoon", "photo", "sketch"}
        The domain that is left out.
    size : int, optional
        What pictures are resized to when decoded.
    root : path, optional
        The folder or archive itself; by default ``pacs/`` or ``pacs160.tar`` in the data folder.
    random_state : int
        Not used: nothing is drawn.
    data_dir : Path, optional
        The data folder.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("pacs", test="photo").train  # doctest: +SKIP
    ('art_painting', 'cartoon', 'sketch')
    """
    found = Path(root) if root is not None else locate(CANDIDATES, data_dir)
    if found is None:
        raise MissingDataError(explain_missing(CANDIDATES[:3], data_dir))
    dataset = image_folder(unpacked(found), name="pacs", test=test, size=size)
    return replace(dataset, citation=CITATION, licence=LICENCE)
