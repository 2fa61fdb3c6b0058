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

from sfboost.encoding import Encoder
from sfboost.encoding.cells import as_series, as_text
from sfboost.notices import first_names, left_out
from sfboost.tables.roles import Roles, require_columns

_MANY_CANDIDATES = 40
_MOST_CLASSES = 50
# Beyond it not every whole number can be told from the next one.
_EXACT = 2.0**53
_ARROW = {"number": pa.float64(), "truth": pa.bool_(), "category": pa.string()}


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
        if pa.types.is_boolean(table.column(code).type):
            continue
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
    cells = {column: as_series(table.column(column.name)) for column in encoder.columns}
    empty = [column.name for column in encoder.columns if column.missing(cells[column]).all()]
    if empty:
        remarks.append(f"Columns {', '.join(empty)} are missing in every training row and say nothing.")
    same = [
        column.name
        for column in encoder.columns
        if column.name not in (*empty, *encoder.gaps) and cells[column].drop_nulls().n_unique() == 1
    ]
    if same:
        remarks.append(
            f"One value in all training rows, so nothing is said by {first_names(map(repr, same))}."
        )
    filled = Encoder(tuple(column for column in encoder.columns if column.name not in empty))
    remarks += filled.remarks(table, "training rows") + filled.doubts(table)
    if roles.search and len(encoder.names) > _MANY_CANDIDATES:
        remarks.append(
            f"--stable auto searches among {len(encoder.names)} columns, which takes a while: --drop or "
            "--unstable make them fewer."
        )
    X, y = frame(table, roles.features), labels(table, roles.target)
    return TrainingTable(roles, encoder, X, y, domain, tuple(remarks))


def prepare_new(
    table: pa.Table,
    roles: Roles,
    encoder: Encoder,
    classes: npt.NDArray[Any],
    name: str = "The table",
    labels: str | None = None,
    *,
    whole: bool = True,
) -> NewTable:
    """Encode rows of a new domain; labels that are there are set aside for scores.

    `labels` names a column with labels of some rows, to adapt with: these rows are not scored. A sample of
    the rows is not `whole`: rows that are alike but for their id are copies of one there.
    """
    require_columns(table.column_names, [column.name for column in encoder.columns], name)
    remarks = encoder.remarks(table)
    y, known, texts = None, None, None
    if labels is not None:
        known = _labels_to_use(table, roles, classes, name, labels)
        n_known = sum(label is not None for label in known)
        remarks.append(f"{n_known} of {len(known)} rows have a label in {labels!r}: these are used to adapt.")
    if roles.target in table.column_names and roles.target != labels:
        texts = as_text(table.column(roles.target), str(roles.target))
    if texts is not None and texts.null_count < len(texts):
        y, strange = known_labels(texts, classes)
        remarks.append(
            f"{name} has the target {roles.target!r}: its labels are used for scores alone, never to adapt."
        )
        if strange:
            hint = spelt_alike(strange, classes)
            remarks.append(f"Labels that training never saw are not scored: {', '.join(strange[:5])}{hint}.")
        if known is not None:  # what a label taught must not be scored by it
            y[[label is not None for label in known]] = None
            y = y if any(label is not None for label in y) else None
    if roles.domain in table.column_names:
        domains = pc.unique(as_text(table.column(roles.domain), str(roles.domain))).drop_null().to_pylist()
        if len(domains) > 1:
            shown = ", ".join(domains[:4]) + (" …" if len(domains) > 4 else "")
            remarks.append(
                f"{name} holds rows of {len(domains)} domains ({shown}), and they are adapted to as one: "
                "`sfboost run` on one file answers each by itself."
            )
    if whole and roles.id in table.column_names:  # adapting needs no id; predicting does
        counts = pc.value_counts(as_text(table.column(roles.id), str(roles.id))).field("counts")
        n_twice = pc.sum(pc.greater(counts, 1)).as_py()
        if n_twice:
            values = "1 value" if n_twice == 1 else f"{n_twice} values"
            occur = "occurs" if n_twice == 1 else "occur"
            n_rows = pc.sum(counts.filter(pc.greater(counts, 1))).as_py()
            remarks.append(
                f"{values} of the id {roles.id!r} {occur} more than once, in {n_rows} rows; every row is "
                "predicted."
            )
    X = frame(table, [column.name for column in encoder.columns])
    return NewTable(table, X, y, tuple(remarks), known)


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
            f"Column {column!r} of {name} holds labels that training never saw ({', '.join(strange[:5])}"
            f"{spelt_alike(strange, classes)}): leave such cells empty. The classes are "
            f"{', '.join(map(str, classes.tolist()))}."
        )
    if all(label is None for label in known):
        raise ValueError(
            f"Column {column!r} of {name} is empty: fill in the label of some rows, or leave --labels out."
        )
    return known


def csv_types(roles: Roles, encoder: Encoder, labels: str | None = None) -> dict[str, pa.DataType]:
    """What CSV columns of new rows are read as: features as in training, names as text (007 stays 007)."""
    names = [name for name in (roles.target, roles.domain, roles.id, labels) if name is not None]
    features = {column.name: _ARROW[column.kind] for column in encoder.columns}
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
