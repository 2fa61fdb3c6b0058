"""One's own files by a name of the list: "table" and "image_folder"."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sfboost.datasets import Dataset, image_folder
from sfboost_lab.datasets.archives import unpacked
from sfboost_lab.datasets.own_tables import encode, from_table


def load_table(
    *,
    source: str | Path,
    target: str,
    domain: str,
    test: str | Iterable[str] = (),
    validate: str | Iterable[str] = (),
    stable_features: Iterable[str] | None = None,
    unstable_features: Iterable[str] | None = None,
    drop: Iterable[str] = (),
    encoded: bool = False,
    random_state: int = 0,
    data_dir: Path | None = None,
) -> Dataset:
    """Return one's own table by the name ``table``; a relative source is looked for in the data folder.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("table", source="rows.csv", target="sick", domain="town", test="B")  # doctest: +SKIP
    """
    path = (data_dir or Path()) / source
    dataset = from_table(
        path,
        target=target,
        domain=domain,
        test=test,
        validate=validate,
        stable_features=stable_features,
        unstable_features=unstable_features,
        drop=drop,
        name=path.stem,
    )
    return encode(dataset) if encoded else dataset


def load_image_folder(
    *,
    root: str | Path,
    test: str | Iterable[str] = (),
    validate: str | Iterable[str] = (),
    size: int | None = None,
    random_state: int = 0,
    data_dir: Path | None = None,
) -> Dataset:
    """Return one's own pictures by name; a relative root is looked for in the data folder.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("image_folder", root="photos", test="night")  # doctest: +SKIP
    """
    found = (data_dir or Path()) / root
    return image_folder(unpacked(found), name=found.stem, test=test, validate=validate, size=size)
