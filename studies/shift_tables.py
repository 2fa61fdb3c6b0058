"""What studies of the shift suite's tables share: new domain by new domain, resumable."""

import argparse
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from sfboost_lab.experiments.origin import origin
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.shifts import suite

Measured = list[dict[str, Any]]


def study_tables(
    description: str | None,
    measure: Callable[[Run], Measured],
    page: Callable[[Sequence[dict[str, Any]]], Iterable[str]],
) -> None:
    """Measure in every new domain of the tables that are asked for, and print the page of all records.

    Finished domains are in the file that `--out` names, and are not done again.
    """
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=form)
    parser.add_argument("--tables", nargs="+", default=list(suite.TABLES))
    parser.add_argument("--learner", choices=["logistic", "boosting"], default="logistic")
    parser.add_argument("--most", type=int, default=None, help="New domains of each table; all by default.")
    parser.add_argument("--out", type=Path, required=True, help="Records, one line each; resumable.")
    told = parser.parse_args()
    known = [json.loads(line) for line in told.out.read_text().splitlines()] if told.out.exists() else []
    done = {(record["table"], record["learner"], record["new"]) for record in known}
    warnings.simplefilter("ignore")
    for table in told.tables:
        for run in suite.in_turn(table, suite.TABLES[table], told.learner):
            new = run.data["new"]
            if (table, told.learner, new) in done or (told.most is not None and new >= told.most):
                continue
            key = {"table": table, "learner": told.learner, "new": new, **origin()}
            made = [key | record for record in measure(run)]
            with told.out.open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in made)
            known += made
            print(table, new, flush=True)
    print("", *page(known), sep="\n")


def line(cells: Iterable[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(cells)} |"
