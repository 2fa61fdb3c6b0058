"""From a table to what the model takes: features as numbers, labels, domains, and remarks on the way."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from sfboost.frames import Encoder
from sfboost.frames.cells import as_text
from sfboost.frames.roles import Roles, require_columns
from sfboost.notices import first_names, left_out

_MOST_CLASSES = 50
# Beyond it not every whole number can be told from the next one.
_EXACT = 2.0**53
_ARROW = {"number": pa.float64(), "truth": pa.bool_()}  # all else is read as text


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Labelled rows as the model takes them; the encoder says how the columns of a new table are read."""

    roles: Roles
    encoder: Encoder
    X: pd.DataFrame
    y: npt.NDArray[Any]
    domain: npt.NDArray[Any]
    remarks: tuple[str, ...]

    @property
    def domains(self) -> tuple[str, ...]:
        """Names of the domains, in order of first appearance."""
        return tuple(dict.fromkeys(self.domain.tolist()))

    def missing(self) -> dict[str, list[float]]:
        """Share of missing cells by column and domain, of the columns where any is."""
        shares = [self.encoder.missing_shares(self.X[self.domain == name]) for name in self.domains]
        names = [column.name for column in self.encoder.columns if any(column.name in s for s in shares)]
        return {name: [part.get(name, 0.0) for part in shares] for name in names}


@dataclass(frozen=True, eq=False)
class NewTable:
    """Rows of a new domain as the model takes them; `y` is for scores alone, `known` to adapt with."""

    table: pa.Table
    X: pd.DataFrame
    y: npt.NDArray[Any] | None
    remarks: tuple[str, ...]
    known: npt.NDArray[Any] | None = None


def prepare_training(
    table: pa.Table, roles: Roles, categorical: tuple[str, ...] = (), name: str = "The table"
) -> TrainingTable:
    """Encode labelled rows; rows without a label or a domain are left out, and that is said."""
    assert roles.target is not None
    assert roles.domain is not None
    require_columns(table.column_names, [roles.target, roles.domain, *roles.features, *categorical], name)
    for code in categorical:
        if not pa.types.is_boolean(table.column(code).type):
            text = as_text(table.column(code), code).dictionary_encode()
            table = table.set_column(table.column_names.index(code), code, text)
    remarks = []
    for column, needs in ((roles.target, "labels"), (roles.domain, "the domain of each row")):
        known = pc.is_valid(as_text(table.column(column), column))
        n_unknown = table.num_rows - int(pc.sum(known).as_py() or 0)
        if n_unknown == table.num_rows:
            raise ValueError(f"Every row of {name} lacks its {column!r}: training needs {needs}.")
        if n_unknown:
            table = table.filter(known)
            remarks.append(left_out(n_unknown, column, name))
    domain = np.array(as_text(table.column(roles.domain), roles.domain).to_pylist(), dtype=object)
    if len(set(domain.tolist())) == 1:
        remarks.append(
            f"All rows are from one domain ({domain[0]}): that the stable features are stable is not checked."
        )
    encoder = Encoder.fit(table, roles.features, gaps=roles.unstable)
    remarks += encoder.remarks(table, "training rows") + encoder.doubts(table)
    X, y = frame(table, roles.features), labels(table, roles.target)
    return TrainingTable(roles, encoder, X, y, domain, tuple(remarks))


def prepare_new(
    table: pa.Table,
    roles: Roles,
    encoder: Encoder,
    classes: npt.NDArray[Any],
    name: str = "The table",
    labels: str | None = None,
) -> NewTable:
    """Encode rows of a new domain; labels that are there are set aside for scores.

    `labels` names a column with labels of some rows, to adapt with: these rows are not scored.
    """
    require_columns(table.column_names, encoder.sources, name)
    remarks = encoder.remarks(table)
    y, known = None, None
    if labels is not None:
        known = _labels_to_use(table, roles, classes, name, labels)
        remarks.append(
            f"{len(known) - sum(label is None for label in known)} of {len(known)} rows have a label in "
            f"{labels!r}: these are used to adapt."
        )
    if roles.target in table.column_names and roles.target != labels:
        texts = as_text(table.column(roles.target), str(roles.target))
        if texts.null_count < len(texts):
            y, strange = known_labels(texts, classes)
            remarks.append(
                f"{name} has the target {roles.target!r}: its labels are used for scores alone, never to "
                "adapt."
            )
            if strange:
                remarks.append(f"Labels that training never saw are not scored: {first_names(strange)}.")
            if known is not None:  # what a label taught must not be scored by it
                y[[label is not None for label in known]] = None
                y = y if any(label is not None for label in y) else None
    if roles.domain in table.column_names:
        domains = pc.unique(as_text(table.column(roles.domain), str(roles.domain))).drop_null().to_pylist()
        if len(domains) > 1:
            remarks.append(
                f"{name} holds rows of {len(domains)} domains ({first_names(domains)}), and they are adapted "
                "to as one: `sfboost run` on one file answers each by itself."
            )
    return NewTable(table, frame(table, encoder.sources), y, tuple(remarks), known)


def _labels_to_use(
    table: pa.Table, roles: Roles, classes: npt.NDArray[Any], name: str, column: str
) -> npt.NDArray[Any]:
    """Labels of some rows, None for the others; a column without any is refused."""
    require_columns(table.column_names, [column], name)
    if column in roles.features:
        raise ValueError(f"--labels names {column!r}, which is a feature: name the column with the labels.")
    known, strange = known_labels(as_text(table.column(column), column), classes)
    if strange:
        raise ValueError(
            f"Column {column!r} of {name} holds labels that training never saw ({first_names(strange)}): "
            f"leave such cells empty. The classes are {first_names(classes.tolist(), 50)}."
        )
    if all(label is None for label in known):
        raise ValueError(
            f"Column {column!r} of {name} is empty: fill in the label of some rows, or leave --labels out."
        )
    return known


def csv_types(roles: Roles, encoder: Encoder, labels: str | None = None) -> dict[str, pa.DataType]:
    """What CSV columns of new rows are read as: features as in training, names as text (007 stays 007)."""
    names = [name for name in (roles.target, roles.domain, roles.id, labels) if name is not None]
    features = {column.name: _ARROW.get(column.kind, pa.string()) for column in encoder.columns}
    return features | dict.fromkeys(names, pa.string())


def frame(table: pa.Table, names: Iterable[str]) -> pd.DataFrame:
    """Columns of a table as pandas holds them."""
    return table.select(list(names)).replace_schema_metadata().to_pandas()


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


def known_labels(texts: Any, classes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], list[str]]:
    """Labels of rows from text, however the file writes them, and texts that are no class.

    Examples
    --------
    >>> known_labels(pa.array(["1", "01", None, "2"]), np.array([0, 1]))
    (array([1, 1, None, None], dtype=object), ['2'])
    >>> known_labels(pa.array(["true", "FALSE", "1"]), np.array([False, True]))
    (array([True, False, True], dtype=object), [])
    >>> known_labels(pa.array(["Yes"]), np.array(["no", "yes"]))
    (array(['yes'], dtype=object), [])
    """
    known = np.unique(classes)
    names = as_text(pa.array([str(label) for label in known.tolist()])).to_pylist()
    by_text = dict(zip(names, known.tolist(), strict=True))
    # Yes is yes, unless the classes are told apart by that.
    by_fold = {name.casefold(): label for name, label in by_text.items()}
    by_fold = by_fold if len(by_fold) == len(by_text) else {}
    by_number = {float(label): label for label in known.tolist()} if known.dtype.kind in "iub" else {}

    def find(text: str) -> Any:
        label = by_text.get(text, by_fold.get(text.casefold()))
        if label is None:
            with suppress(ValueError):
                return by_number.get(float(text))
        return label

    label_of = {text: find(text) for text in texts.unique().drop_null().to_pylist()}
    strange = sorted(text for text, label in label_of.items() if label is None)
    return np.array([label_of.get(text) for text in texts.to_pylist()], dtype=object), strange
