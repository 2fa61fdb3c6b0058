"""Sums as bytes that hold numbers and Arrow tables alone: between machines, and on disk. No pickle."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import astuple, fields, is_dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from sfboost.adaptation.likelihood_sums import LikelihoodSums
from sfboost.heads import SoftLogisticRegression
from sfboost.marginal import PseudoLabelStatistics
from sfboost.streaming.rows import Looked


def pack(total: Any) -> bytes:
    """Bytes of a sum; of None, none."""
    if total is None:
        return b""
    if isinstance(total, Looked):
        total = total.fewest()
    parts = {type(total).__name__: np.zeros(0)}
    for part in fields(total):
        value = getattr(total, part.name)
        if isinstance(value, PseudoLabelStatistics):
            parts |= {f"{part.name}.{i}": np.asarray(v) for i, v in enumerate(astuple(value))}
        elif isinstance(value, pa.Table):
            parts[part.name] = np.frombuffer(_table_bytes(value), dtype=np.uint8)
        else:
            parts[part.name] = np.asarray(value)
    file = io.BytesIO()
    np.savez(file, **parts)  # type: ignore[arg-type]
    return file.getvalue()


def unpack(data: bytes) -> Any:
    """The inverse of `pack`."""
    if not data:
        return None
    with np.load(io.BytesIO(data), allow_pickle=False) as parts:
        if "LikelihoodSums" in parts:
            n_rows, value, *arrays = (parts[f.name] for f in fields(LikelihoodSums))
            return LikelihoodSums(n_rows.item(), value.item(), *arrays)
        weight, total, cross = (parts[f"statistics.{i}"] for i in range(3))
        return Looked(
            PseudoLabelStatistics(weight.item(), total, cross),
            parts["mean"],
            parts["spread"],
            parts["largest"],
            bool(parts["all_certain"]),
            parts["keys"],
            parts["counts"],
            ipc.open_stream(parts["rows"].tobytes()).read_all(),
            int(parts["bound"]),
        )


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def fingerprint(*things: Any) -> str:
    """A hash of numbers, words and dataclasses of them: equal for equal work."""
    found = sha256()
    for thing in things:
        _feed(found, thing)
    return found.hexdigest()


def _feed(found: Any, thing: Any) -> None:
    if isinstance(thing, np.ndarray):
        found.update(f"{thing.dtype}{thing.shape}".encode())
        found.update(np.ascontiguousarray(thing).tobytes())
    elif isinstance(thing, SoftLogisticRegression):
        _feed(found, (thing.coef_, thing.intercept_, thing.l2))
    elif is_dataclass(thing) and not isinstance(thing, type):
        found.update(type(thing).__name__.encode())
        _feed(found, tuple(getattr(thing, part.name) for part in fields(thing)))
    elif isinstance(thing, tuple | list):
        for part in thing:
            _feed(found, part)
    elif isinstance(thing, Mapping):
        _feed(found, sorted(thing.items()))
    else:
        found.update(repr(thing).encode() + b"\0")
