"""Classes: what the target column of a training table holds, and which of them a new table means."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sfboost.encoding.cells import as_text

_MOST_CLASSES = 50
# Beyond it not every whole number can be told from the next one.
_EXACT = 2.0**53


def labels(table: pa.Table, target: str) -> npt.NDArray[Any]:
    """Classes of the rows: whole numbers, truth values or text."""
    values = table.column(target)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    found = np.array(values.to_pylist())
    if found.dtype.kind == "f":
        strange = (found != np.round(found)) | (np.abs(found) > _EXACT)
        if strange.any():
            raise ValueError(
                f"The target {target!r} holds numbers such as {found[strange][0]:g}, not classes: sfboost "
                "classifies. Turn it into classes first."
            )
        found = found.astype(np.int64)  # a missing label had turned whole numbers into floats
    if found.dtype.kind == "O":
        found = np.array(as_text(values, target).to_pylist())
    if len(np.unique(found)) > _MOST_CLASSES:
        raise ValueError(
            f"The target {target!r} holds {len(np.unique(found))} different values: at most {_MOST_CLASSES} "
            "classes can be told apart."
        )
    return found


def spelt_alike(strange: list[str], classes: npt.NDArray[Any]) -> str:
    """What to say of texts that are no class but for upper and lower case, or nothing.

    Examples
    --------
    >>> spelt_alike(["Yes", "perhaps"], np.array(["no", "yes"]))
    " (training writes 'Yes' as 'yes': write it alike)"
    """
    known = {str(label).casefold(): str(label) for label in np.unique(classes).tolist()}
    for text in strange:
        if text.casefold() in known:
            return f" (training writes {text!r} as {known[text.casefold()]!r}: write it alike)"
    return ""


def known_labels(texts: Any, classes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], list[str]]:
    """Labels of rows from text, however the file writes them, and texts that are no class.

    Examples
    --------
    >>> known_labels(pa.array(["1", "01", None, "2"]), np.array([0, 1]))
    (array([1, 1, None, None], dtype=object), ['2'])
    >>> known_labels(pa.array(["true", "FALSE", "1"]), np.array([False, True]))
    (array([True, False, True], dtype=object), [])
    """
    known = np.unique(classes)
    fold = str.lower if known.dtype.kind == "b" else str
    names = as_text(pa.array([str(label) for label in known.tolist()])).to_pylist()
    by_text = {fold(name): label for name, label in zip(names, known.tolist(), strict=True)}
    by_number = {float(label): label for label in known.tolist()} if known.dtype.kind in "iub" else {}

    def find(text: str) -> Any:
        if fold(text) in by_text:
            return by_text[fold(text)]
        with suppress(ValueError):
            return by_number.get(float(text))
        return None

    label_of = {text: find(text) for text in texts.unique().drop_null().to_pylist()}
    strange = sorted(text for text, label in label_of.items() if label is None)
    return np.array([label_of.get(text) for text in texts.to_pylist()], dtype=object), strange
