"""Damaged and forged input for every public reader: read, or refused, in little time and memory.

python tools/fuzz.py [--files 100000] [--tables 10000] [--first 0]

A case is a genuine file that a seeded mutator changed: a model file by part (the zip itself, manifest, tree,
npy, skops, safetensors), or what the command is given (CSV, Parquet, Arrow, TOML, the columns of labels and
domains). A case that fails has a line with its kind and seed; `tests/test_fuzz.py` tries a few, and what is
kept in `tests/corpus/KIND/`.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import io
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from textwrap import indent
from typing import Any

MOST_SECONDS = 2.0  # of the processor, for one reader and one case
MOST_MEGABYTES = 500  # more than before the case
HANGS = 60.0  # seconds; compiled code is not interrupted, but its process is ended
BATCH = 500  # cases of one process

Change = Callable[[bytes, random.Random], bytes]


class TooMuchError(BaseException):
    """More time or memory than a case may have; no reader takes it for a damaged file."""


# -- what changes bytes, trees and tables -------------------------------------------------------------

JUNK: list[Any] = [None, True, -1, 2**63, 1e308, "", "model.json", "parts/0.npy", [], {}, [[]]]
JUNK += [{"array": "parts/0.npy"}, {"object": "Temperature", "state": {}}, {"scalar": 1}, {"number": "O"}]
JUNK += [{"dict": [[{}, 1]]}]
TOKENS = [b"PK\x01\x02", b"PK\x05\x06", b"PK\x03\x04", b"\xff" * 4, b"\0" * 4, b"{", b"]", b'"', b"(9,)"]


def changed_bytes(data: bytes, rng: random.Random, tokens: list[bytes] = TOKENS) -> bytes:
    """Bytes flipped, cut, repeated, or written over by what means something to a parser."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place, length, way = rng.randrange(len(made)), rng.choice((1, 4, 40)), rng.randrange(5)
        if way == 0:
            made[place] ^= 1 << rng.randrange(8)
        elif way == 1:
            made[place:place] = made[place : place + length] * rng.choice((1, 50))
        elif way == 2:
            token = rng.choice(tokens)
            made[place : place + rng.choice((0, len(token)))] = token
        else:
            del made[place : place + (length if way == 3 else rng.choice((100, len(made))))]
        made = made or bytearray(1)
    return bytes(made)


def changed_json(data: bytes, rng: random.Random) -> bytes:
    """Nodes of a tree left out, or replaced by junk or by another of its nodes."""
    tree = json.loads(data)
    for _ in range(rng.choice((1, 1, 3))):
        places = list(_places(tree))
        (node, key), (other, name) = rng.choice(places), rng.choice(places)
        if rng.random() < 0.2:
            del node[key]
        else:
            chosen = rng.choice(JUNK) if rng.random() < 0.6 else other[name]
            node[key] = json.loads(json.dumps(chosen))  # a copy: later changes are to the tree alone
    return json.dumps(tree).encode()


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def changed_skops(data: bytes, rng: random.Random) -> bytes:
    """One member of a part of skops changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(("schema.json", *members))
    members[name] = (changed_json if name == "schema.json" else changed_bytes)(members[name], rng)
    return zipped(members)


def zipped(members: dict[str, bytes]) -> bytes:
    """An uncompressed zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


TEXT_TOKENS = [b'"', b",", b";", b"\r", b"\n", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"\x1f\x8b", b"PAR1"]
TEXT_TOKENS += [b"age,", b"nan", b"inf", b"-1e400", b"?", b"1" * 400, "é\u2028".encode(), b"#", b" ", b"''"]
TOML_TOKENS = [b"[", b"]", b"=", b'"', b'"""', b"\n", b"#", b"[[model]]", b"1e999", b"0x", b"true", b"\xff"]
TOML_TOKENS += [b"target", b"-1", b"[]", b"{}", b"{a=1}", b"1979-05-27", b"[" * 2000, b"9" * 5000, b"a.b.c"]
TOML_VALUES = ["-1", "true", '""', "[]", "{}", "1e999", "nan", "2020-01-01", '["a", 1]', r'"\u0000"']
CELLS: list[Any] = ["", "yes", "no", "é", "NaN", "1", "1.0", "007", "True", "a\nb", "a,b", '"', "?", "1e999"]
CELLS += ["2020-01-01", "<b>", "x" * 3000, "-0", " yes", "YES", "0x10", "\u202e", "=1+1"]


def changed_text(data: bytes, rng: random.Random) -> bytes:
    """Text of a CSV file: another encoding, other line ends, or bytes of it changed."""
    way = rng.randrange(8)
    if way == 0:
        return data.decode().encode(rng.choice(("utf-16", "utf-32", "utf-16-be", "cp037", "utf-8-sig")))
    if way == 1:
        data = data.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\r", b"\n\n", b"\v", b" \n")))
    if way == 2:
        data = data.replace(b",", rng.choice((b";", b"\t", b"|", b" ", b",,")))
    if way == 3:
        return data.partition(b"\n")[0] + rng.choice((b"", b"\n", b"\n\n\n", b"\r"))
    return changed_bytes(data, rng, TEXT_TOKENS)


def changed_column(data: bytes, rng: random.Random, among: tuple[str, ...] = ()) -> Any:
    """A table (of pyarrow) with a column of another type, or with other cells."""
    import pyarrow as pa
    from pyarrow import csv

    table = csv.read_csv(io.BytesIO(data))
    name = rng.choice(among or tuple(table.column_names))
    place, rows = table.column_names.index(name), table.num_rows
    kinds = [
        lambda: pa.array([rng.choice(CELLS) for _ in range(rows)]),
        lambda: pa.array([rng.choice((*CELLS[:3], None)) for _ in range(rows)]),
        lambda: pa.array([rng.choice((0, 1, 2, 10**9, None)) for _ in range(rows)]),
        lambda: pa.array([rng.choice((0.0, 1.0, float("nan"), float("inf"), -1e308)) for _ in range(rows)]),
        lambda: pa.array([rng.random() < 0.5 for _ in range(rows)]),
        lambda: pa.array([str(i) for i in range(rows)]),
        lambda: pa.nulls(rows),
        lambda: pa.array([[1, 2]] * rows),
        lambda: pa.array([{"a": 1}] * rows),
        lambda: pa.array([b"\xff\0"] * rows),
        lambda: pa.array(range(rows), pa.timestamp(rng.choice(("s", "ns")))),
        lambda: pa.array(range(rows), pa.duration("s")),
        lambda: pa.array(range(rows), pa.date32()),
        lambda: pa.array(range(rows)).cast(pa.decimal128(30, 2)),
        lambda: pa.array([rng.choice(("yes", "no")) for _ in range(rows)]).dictionary_encode(),
        lambda: pa.array([2**64 - 1] * rows, pa.uint64()),
        lambda: pa.array([0.5] * rows).cast(pa.float16()),
    ]
    column = rng.choice(kinds)()
    way = rng.randrange(6)
    if way == 0:
        return table.slice(0, rng.choice((0, 1, 2, 5)))
    if way == 1:
        return table.append_column(rng.choice((name, "", "new", "é", "a\nb")), column)
    if way == 2:
        return table.drop_columns([name])
    return table.set_column(place, name, column)


def changed_parquet(data: bytes, rng: random.Random) -> bytes:
    """A Parquet file with another column, or with changed bytes."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(changed_column(data, rng), buffer)
    return buffer.getvalue() if rng.random() < 0.4 else changed_bytes(buffer.getvalue(), rng)


def changed_arrow(data: bytes, rng: random.Random) -> bytes:
    """An Arrow file or stream with another column, or with changed bytes."""
    from pyarrow import ipc

    table, buffer = changed_column(data, rng), io.BytesIO()
    with rng.choice((ipc.new_file, ipc.new_stream))(buffer, table.schema) as writer:
        writer.write_table(table)
    return buffer.getvalue() if rng.random() < 0.4 else changed_bytes(buffer.getvalue(), rng)


def changed_labels(data: bytes, rng: random.Random) -> bytes:
    """CSV or Parquet whose column of labels or of domains holds something else."""
    import pyarrow.parquet as pq
    from pyarrow import csv

    table, buffer = changed_column(data, rng, ("sick", "hospital")), io.BytesIO()
    with suppress(Exception):  # CSV has no lists
        if rng.random() < 0.5:
            csv.write_csv(table, buffer)
            return buffer.getvalue()
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def changed_toml(data: bytes, rng: random.Random) -> bytes:
    """Options of another type, or changed bytes."""
    if rng.random() < 0.5:
        return changed_bytes(data, rng, TOML_TOKENS)
    lines = data.decode().splitlines()
    value = rng.choice(
        ("-1", "true", '""', "[]", "{}", "1e999", "nan", "2020-01-01", '["a", 1]', '"\\u0000"')
    )
    place = rng.randrange(len(lines))
    lines[place] = lines[place].partition("=")[0] + "= " + value
    return "\n".join(lines).encode()


PARTS: dict[str, Change] = {"manifest": changed_json, "model": changed_json, "skops": changed_skops}
PARTS |= dict.fromkeys(("npy", "safetensors", "zip"), changed_bytes)
TABLES: dict[str, Change] = {"csv": changed_text, "parquet": changed_parquet, "arrow": changed_arrow}
TABLES |= {"labels": changed_labels, "toml": changed_toml}

TOML = b"""target = "sick"
domain = "hospital"
stable = "age,sex,chol"
id = "patient"
drop = "ward"
evaluate = false
metric = "accuracy"
learner = "linear"
[model]
cv = 3
calibration = "cv"
random_state = 0
"""


# -- genuine files, and who reads them ----------------------------------------------------------------


class Readers:
    """Genuine files in a folder, and every public reader.

    Parameters
    ----------
    folder : Path
        An empty one.
    """

    def __init__(self, folder: Path) -> None:
        from hospitals import ROLES, reversed_hospital, training
        from sklearn.naive_bayes import GaussianNB

        from sfboost import StableFeatureBoosting
        from sfboost.persistence.archive import unpack
        from sfboost.torch import Plan, SFBClassifier

        self.folder, self.roles = folder, ROLES
        rows, new = training(40), reversed_hospital(60)
        self.train = rows.to_csv(index=False).encode()
        self.new = new.drop(columns="sick").to_csv(index=False).encode()
        (folder / "train.csv").write_bytes(self.train)
        X, y = rows[["age", "heart_rate"]].to_numpy(), rows["sick"].to_numpy(object)
        network = SFBClassifier("small", plan=Plan(steps=2, unstable_steps=2, max_restarts=0))
        self.models = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for model in (StableFeatureBoosting([0], [1], stable=GaussianNB()), network):
                model.fit(X, y, sample_domain=rows["hospital"].to_numpy(object)).save(folder / "genuine.sfb")
                self.models.append(unpack((folder / "genuine.sfb").read_bytes()))
        self._command("fit", folder / "train.csv", *ROLES, "--no-evaluate", "-o", folder / "fitted.sfb")

    def read(self, kind: str, seed: int) -> None:
        """Let everybody read one case; raise `AssertionError` or `TooMuchError` if one fails."""
        rng = random.Random(f"{kind} {seed}")
        change = (PARTS | TABLES)[kind] if kind in TABLES or rng.random() < 0.8 else changed_bytes
        rng.shuffle(self.models)
        self.read_content(kind, lambda data: change(data, rng))

    def read_content(self, kind: str, change: Callable[[bytes], bytes]) -> None:
        """Let everybody read what `change` makes of a genuine file or part."""
        if kind in PARTS:
            self._read_model(self.forge(kind, change))
        elif kind == "toml":
            self._read_options(change(TOML))
        else:
            self._read_table(kind, change(self.train if kind == "labels" else self.new))

    def forge(self, part: str, change: Callable[[bytes], bytes]) -> bytes:
        """A sealed model file that has a part changed; "zip" is the whole of it."""
        from sfboost.persistence.archive import pack

        parts = next(parts for parts in self.models if part == "zip" or any(part in name for name in parts))
        if part == "zip":
            body = change(pack(parts)[:-64])
            return body + hashlib.sha256(body).hexdigest().encode()
        name = next(name for name in parts if part in name)
        return pack({**parts, name: change(parts[name])})

    def _read_model(self, data: bytes) -> None:
        import sfboost
        from sfboost.persistence.saving import read_manifest
        from sfboost.torch import load

        path = self.folder / "case.sfb"
        path.write_bytes(data)
        for reader in (sfboost.load, load, read_manifest):
            with limited(), warnings.catch_warnings(), suppress(sfboost.SavedModelError):
                warnings.simplefilter("ignore")
                reader(path)
        self._command("info", path)

    def _read_table(self, kind: str, data: bytes) -> None:
        path, out = self.folder / f"case.{'csv' if kind == 'labels' else kind}", self.folder / "out.sfb"
        path.write_bytes(data)
        if kind == "labels":
            self._command("fit", path, *self.roles, "--no-evaluate", "-o", out)
        else:
            self._command("predict", self.folder / "fitted.sfb", path, "-o", self.folder / "out.csv")
            self._command("adapt", self.folder / "fitted.sfb", path, "-o", out)

    def _read_options(self, data: bytes) -> None:
        path = self.folder / "case.toml"
        path.write_bytes(data)
        self._command("fit", self.folder / "train.csv", "--config", path, "-o", self.folder / "out.sfb")

    @staticmethod
    def _command(*arguments: Any) -> None:
        from typer.testing import CliRunner

        from sfboost.cli.app import app

        with limited():
            done = CliRunner().invoke(app, [str(argument) for argument in (*arguments, "--debug")])
        told = f"sfboost {arguments[0]}: exit {done.exit_code}, {done.exception!r}\n{done.output}"
        assert done.exit_code in (0, 2), told


@contextmanager
def limited() -> Iterator[None]:
    """Limit processor time and memory of what runs in it."""

    def stop(*_: Any) -> None:
        raise TooMuchError(f"more than {MOST_SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    peak = _peak_megabytes()
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
    if _peak_megabytes() - peak > MOST_MEGABYTES:
        raise TooMuchError(f"more than {MOST_MEGABYTES} MiB")


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# -- many cases ---------------------------------------------------------------------------------------


def try_batch(readers: Readers, cases: list[tuple[str, int]], told: Path, at: Any) -> None:
    """Read cases in this process; `at` says which one, and `told` gets a line for each that failed."""
    size = os.sysconf("SC_PAGE_SIZE") * int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 30),) * 2)  # the machine stays usable
    for at.value, (kind, seed) in enumerate(cases):
        try:
            readers.read(kind, seed)
        except (Exception, TooMuchError):
            with told.open("a") as file:
                file.write(f"{kind} {seed}:\n{indent(traceback.format_exc(limit=-3), '    ')}")
    at.value = len(cases)


def run_batch(readers: Readers, cases: list[tuple[str, int]], told: Path) -> None:
    """Read cases in processes of their own: one that crashes or hangs costs its case and no other."""
    context = get_context("fork")
    while cases:
        at = context.Value(ctypes.c_long, 0)
        worker = context.Process(target=try_batch, args=(readers, cases, told, at))
        worker.start()
        seen, since = 0, time.monotonic()
        while worker.is_alive() and time.monotonic() - since < HANGS:
            worker.join(1.0)
            if at.value != seen:
                seen, since = at.value, time.monotonic()
        worker.kill()
        worker.join()
        if at.value < len(cases):
            kind, seed = cases[at.value]
            with told.open("a") as file:
                file.write(f"{kind} {seed}: its process hung or crashed ({worker.exitcode})\n")
        cases = cases[at.value + 1 :]


def cases_of(kinds: dict[str, Change], count: int, first: int) -> list[tuple[str, int]]:
    """Return kinds in turn, each with seeds from `first` on."""
    names = list(kinds)
    return [(names[i % len(names)], first + i // len(names)) for i in range(count)]


def main() -> int:
    """Try them, print the counts and what failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000, help="model files")
    parser.add_argument("--tables", type=int, default=10_000, help="tables and TOML files")
    parser.add_argument("--first", type=int, default=0, help="seed of the first case of each kind")
    options = parser.parse_args()
    cases = cases_of(TABLES, options.tables, options.first) + cases_of(PARTS, options.files, options.first)
    with tempfile.TemporaryDirectory() as folder:
        readers, told, start = Readers(Path(folder)), Path(folder, "failed.txt"), time.monotonic()
        told.touch()
        for begin in range(0, len(cases), BATCH):
            before = told.stat().st_size
            run_batch(readers, cases[begin : begin + BATCH], told)
            print(told.read_text()[before:], end="", flush=True)
            if (begin // BATCH) % 2 == 0:
                print(f"{begin} of {len(cases)} cases, {time.monotonic() - start:.0f} s", flush=True)
        failed = [line for line in told.read_text().splitlines() if line.startswith(tuple(PARTS | TABLES))]
    counts = Counter(kind for kind, _ in cases)
    print(
        f"{len(cases)} cases: {', '.join(f'{kind} {n}' for kind, n in counts.items())}; {len(failed)} failed"
    )
    return bool(failed)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests/helpers"))
    sys.exit(main())
