"""`sfboost run` where NEW holds many domains: an answer for each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import typer

from sfboost.boosting import AdaptedDomains
from sfboost.cli.console import NOT_ADAPTED, Line, Voice
from sfboost.cli.options import AdaptOptions, CsvOptions, StreamOptions
from sfboost.cli.predictions import predict_batches
from sfboost.cli.project import Project
from sfboost.encoding.cells import as_text
from sfboost.notices import first_names
from sfboost.report.domains import DomainFact, domain_facts, render_domains
from sfboost.streaming.blocks import BATCH_ROWS
from sfboost.tables.preparing import NewTable
from sfboost.tables.reading import Kind, open_batches
from sfboost.tables.writing import open_table, whole_output


def holds_many(where: str, stream: StreamOptions, domain: str, csv: CsvOptions) -> bool:
    """Whether a long file is of several domains: it is then read at once. A folder, or an engine, is one."""
    if stream.engine is not None or Path(where).is_dir():
        return False
    found: set[str] = set()
    with open_batches(csv.find(where), BATCH_ROWS, {domain: pa.string()}, [domain]) as (_, batches):
        for batch in batches:
            if domain in batch.schema.names:
                found |= set(pc.unique(as_text(batch.column(domain), domain)).drop_null().to_pylist())
            if len(found) > 1 or domain not in batch.schema.names:
                break
    return len(found) > 1


def domain_of_rows(table: pa.Table, project: Project, name: str) -> npt.NDArray[np.object_] | None:
    """The domain of each new row, if the table names more than one."""
    column = project.roles.domain
    if column not in table.column_names:
        return None
    texts = as_text(table.column(column), str(column))
    if len(pc.unique(texts).drop_null()) < 2:
        return None
    if texts.null_count:
        raise ValueError(
            f"{texts.null_count} rows of {name} have no {column!r}, and the others are of several: fill it "
            "in, or drop those rows."
        )
    return np.array(texts.to_pylist(), dtype=object)


def refuse_for_many(asked: AdaptOptions) -> None:
    """What is of one new domain cannot be had for several."""
    if asked.labels is not None:
        raise ValueError(
            "--labels are of one new domain, and NEW holds several: give the rows of one at a time."
        )
    if asked.card is not None:
        raise ValueError(
            "A model card is of one new domain, and NEW holds several: leave --card out, or give the rows of "
            "one."
        )


@dataclass(frozen=True, eq=False)
class EachDomain:
    """A project, and new rows of several domains.

    Attributes
    ----------
    domain : array of shape (n,)
        Of each row.
    name, source : str
        Of the new table and of the training table.
    remarks : tuple of str
        On the training table.
    also : tuple of str
        Other answers that are to stand beside the predictions.
    shown : sequence of str
        Domains that have a part in the report, beside the most unusual ones.
    """

    project: Project
    rows: NewTable
    domain: npt.NDArray[np.object_]
    name: str
    source: str
    remarks: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    shown: Sequence[str] = ()

    def answer(self, voice: Voice, asked: AdaptOptions, output: str, kind: Kind, command: str = "") -> None:
        """Adapt, write predictions and page, and tell; code 3 if adapting was required and was nowhere."""
        rows, domain, written = self.rows, self.domain, {"predictions": output}
        refuse_for_many(asked)
        if unknown := sorted(set(self.shown) - set(domain.tolist())):
            raise ValueError(
                f"{self.name} has no domain {', '.join(unknown)}: --show-domain names what is there."
            )
        with voice.waiting("Adapting"):
            many: AdaptedDomains = self.project.model.adapt(
                rows.X, sample_domain=domain, answer=asked.answer.value, leak=asked.leak
            )
            facts = domain_facts(many, rows.X, domain, rows.y, self.shown)
        with open_table(output, kind) as write:
            batches = rows.table.to_batches(BATCH_ROWS)
            for batch in predict_batches(self.project, batches, self.name, self.also, many=many):
                write(batch)
        remarks = (*self.remarks, *rows.remarks)
        if asked.report is not None:
            with whole_output(asked.report) as part:
                title, today = f"The domains of {self.name}", datetime.now(UTC).strftime("%Y-%m-%d")
                page = render_domains(
                    facts, self.project.training, title, self.source, today, command, remarks
                )
                part.write_text(page, encoding="utf-8")
            written["report"] = str(asked.report)
        voice.note(*remarks)
        values = {"rows": len(domain), "domains": [asdict(fact) for fact in facts], "remarks": list(remarks)}
        files = [f"{what}: {path}" for what, path in written.items()]
        voice.result(values | {"files": written}, *_words(facts), *files)
        if asked.require_adapted and {fact.decision for fact in facts} == {"kept stable"}:
            raise typer.Exit(NOT_ADAPTED)


def _words(facts: list[DomainFact]) -> list[Line]:
    counts = Counter(fact.decision for fact in facts)
    lines: list[Line] = [
        f"{len(facts)} domains: {', '.join(f'{count} {kind}' for kind, count in counts.most_common())}"
    ]
    changed = [fact.name for fact in facts if fact.verdict == "changed"]
    if changed:
        lines.append(f"a meaning changed in {len(changed)}: {first_names(changed)}")
    scored = [fact for fact in facts if fact.answer is not None]
    if scored:
        n_rows = np.array([fact.n_rows for fact in scored])
        stable, answer = (
            100 * np.average([getattr(fact, kind) for fact in scored], weights=n_rows)
            for kind in ("stable", "answer")
        )
        lines.append(f"accuracy on the labels that were given: stable {stable:.1f} %, answer {answer:.1f} %")
    return lines
