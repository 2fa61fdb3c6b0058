"""Tables that are long, or many files: adapted to and predicted block by block."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from sfboost.boosting.parts import is_summable
from sfboost.cli.inputs import take_new
from sfboost.cli.options import AdaptOptions, CsvOptions, StreamOptions
from sfboost.cli.predictions import needed_columns, predict_batches
from sfboost.cli.project import MOST_PARAMETERS, Project
from sfboost.marginal.probabilities import FloatArray
from sfboost.notices import first_names
from sfboost.streaming import Block, adapt_stream, find_blocks, make_engine
from sfboost.streaming.blocks import BATCH_ROWS, count_rows
from sfboost.streaming.packing import fingerprint
from sfboost.tables.preparing import NewTable, csv_types
from sfboost.tables.reading import ENDINGS, PIPE, Kind
from sfboost.tables.roles import require_columns
from sfboost.tables.writing import open_table
from sfboost.whole_files import put_in_place

#: Longer tables are read block by block.
_LONG_ROWS = 200_000
_LONG_BYTES = 1 << 26


def is_long(where: str | None, stream: StreamOptions, project: Project) -> bool:
    """Whether to read a table block by block: a folder, a long file, or with an engine that is named."""
    if where is None or where == PIPE:
        return False
    path = Path(where)
    if stream.engine is not None or path.is_dir():
        return True
    if not path.is_file() or not is_summable(project.model):
        return False
    rows = count_rows([Block(where)]) if path.suffix in (".parquet", ".pq") else None
    return path.stat().st_size > _LONG_BYTES if rows is None else rows > _LONG_ROWS


def blocks_of(project: Project, where: str, csv: CsvOptions) -> tuple[list[Block], list[str]]:
    """The blocks of a table, with the columns that adapting, predicting and reports read, and remarks.

    A file that lacks a column is refused, with rows or without.
    """
    roles = project.roles
    names = [*needed_columns(project), *(name for name in (roles.target, roles.domain) if name is not None)]
    blocks = find_blocks(
        where, columns=tuple(dict.fromkeys(names)), types=csv_types(roles, project.encoder), **asdict(csv)
    )
    wanted, empty = [column.name for column in project.encoder.columns], []
    for path, block in {block.path: block for block in blocks}.items():
        there, rows = block.columns_and_rows() or (wanted, True)
        require_columns(there, wanted, Path(path).name)
        empty += [] if rows else [Path(path).name]
    if not empty:
        return blocks, []
    have = "has" if len(empty) == 1 else "have"
    return blocks, [f"{first_names(empty)} {have} a header but no rows."]


@dataclass(frozen=True, eq=False)
class AdaptedTable:
    """A project that was adapted to a table.

    Attributes
    ----------
    rows : NewTable
        What the report looks at: the rows, or of a long table some.
    blocks : tuple of Block
        Of a long table.
    """

    project: Project
    rows: NewTable
    name: str
    n_rows: int
    remarks: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, a batch at a time."""
        return batches_of(self.blocks) if self.blocks else iter(self.rows.table.to_batches(BATCH_ROWS))


def adapt_table(project: Project, rows: NewTable, name: str, adapting: AdaptOptions) -> AdaptedTable:
    """Adapt to a table that is here."""
    project = project.adapt(rows, answer=adapting.answer.value, leak=adapting.leak)
    return AdaptedTable(project, rows, name, rows.table.num_rows)


def adapt_blocks(
    project: Project,
    where: str,
    csv: CsvOptions,
    stream: StreamOptions,
    adapting: AdaptOptions,
    resume: Path | None = None,
    label: str = "",
) -> AdaptedTable:
    """Adapt to all rows of a long table."""
    model, name = project.model, Path(where).name
    if adapting.labels is not None:
        raise ValueError(
            f"--labels is for tables that are read as a whole, and {name} is read block by block: put the "
            f"labelled rows and up to {_LONG_ROWS} others into a table, and adapt to that."
        )
    n_parameters = (len(model.unstable_columns_) + 1) * len(model.classes_)
    blocks, remarks = blocks_of(project, where, csv)
    streamed = adapt_stream(
        model,
        blocks,
        engine=make_engine(stream.engine or "here"),
        answer=adapting.answer.value,
        leak=adapting.leak,
        uncertainty=n_parameters <= MOST_PARAMETERS,
        skip_unreadable=stream.skip_unreadable,
        resume=resume if len(blocks) > 1 else None,
        label=label,
    )
    remarks += [f"Left out: {why}" for why in streamed.skipped]
    if streamed.n_rows > streamed.sample.num_rows:
        remarks.append(
            f"The decision, the class shares and the head are of all {streamed.n_rows} rows; checks, "
            f"examples and scores look at {streamed.sample.num_rows} of them, chosen by a hash of the row."
        )
    rows = take_new(streamed.sample, project, name, whole=False)
    project = replace(project, adapted=streamed.adapted)
    return AdaptedTable(project, rows, name, streamed.n_rows, tuple(remarks), streamed.blocks)


def batches_of(blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
    """All rows of the blocks, a batch at a time, in the types of the first."""
    schema = None
    for block in blocks:
        for batch in block.batches():
            schema = schema or batch.schema.remove_metadata()
            try:
                yield batch.select(schema.names).cast(schema)
            except (KeyError, pa.ArrowException) as error:
                raise ValueError(
                    f"{block.name} has other columns or types than the first: {error}"
                ) from error


def label_of(path: Path) -> str:
    """What tells a model file from another."""
    return sha256(path.read_bytes()).hexdigest()


def is_folder(output: str) -> bool:
    """Whether predictions are to be a folder of files: its name ends in / or has no ending of a table."""
    path = Path(output)
    return output != PIPE and (output.endswith("/") or path.is_dir()) and path.suffix.lower() not in ENDINGS


@dataclass(frozen=True, eq=False)
class PredictBlock:
    """The work on one block: its predictions as one file, whole or not at all."""

    project: Project
    folder: str
    kind: Kind
    label: str
    also: tuple[str, ...] = ()
    costs: FloatArray | None = None

    def place(self, block: Block) -> Path:
        """The file of a block; another one if the block or the model is another."""
        name = fingerprint(block.stamp, self.label + ",".join(self.also))[:24]
        return Path(self.folder) / f"{name}.{self.kind}"

    def __call__(self, block: Block) -> bytes:
        """Write it, and return the number of its rows."""
        rows = 0
        with open_table(str(self.place(block)), self.kind) as write:
            for batch in predict_batches(self.project, block.batches(), block.name, self.also, self.costs):
                write(batch)
                rows += batch.num_rows
        return str(rows).encode()


def predict_folder(
    project: Project,
    blocks: list[Block],
    output: str,
    kind: Kind,
    stream: StreamOptions,
    label: str,
    also: tuple[str, ...] = (),
    costs: FloatArray | None = None,
) -> tuple[int, list[str]]:
    """Predictions of each block as a file of a folder, which appears when all are there.

    Until then they lie in a folder beside it; a rerun leaves out those that are finished. Returned are the
    rows that were predicted now, and what is to be said of the others.
    """
    target = Path(output)
    if target.exists() and any(target.iterdir()):
        raise ValueError(f"The folder {target} is not empty: name one that is not there yet.")
    parts = target.parent / f".{target.name}.parts"
    parts.mkdir(parents=True, exist_ok=True)
    for named in parts.glob("part-*"):  # of a run that was stopped at its very end, perhaps of other blocks
        named.unlink()
    work = PredictBlock(project, str(parts.resolve()), kind, label, also, costs)
    todo = [block for block in blocks if not work.place(block).exists()]
    rows, lost = 0, []
    for block, result in make_engine(stream.engine or "here").run(todo, work):
        if isinstance(result, bytes):
            rows += int(result)
        elif stream.skip_unreadable:
            lost.append(block)
        else:
            raise ValueError(
                f"{result} Mend or remove it, or say --skip-unreadable to go on without it. What is finished "
                f"is kept in {parts}: the same command goes on from there."
            )
    done = [block for block in blocks if block not in lost]
    for number, block in enumerate(done):
        work.place(block).rename(parts / f"part-{number:06d}-{Path(block.path).stem}.{kind}")
    for left in parts.iterdir():
        if not left.name.startswith("part-"):
            left.unlink()  # of another model, or of a file that has changed since
    if target.exists():
        target.rmdir()
    put_in_place(parts, target)
    notes = [f"Left out: {block.name}" for block in lost]
    if len(todo) < len(blocks):
        notes.append(f"{len(blocks) - len(todo)} of {len(blocks)} blocks were predicted before this run.")
    return rows, notes


def forget(resume: Path) -> None:
    """Remove what was kept for going on, after all is done."""
    shutil.rmtree(resume, ignore_errors=True)
