"""`sfboost propose`: which columns could be stable, ranked."""

from __future__ import annotations

from dataclasses import replace

import typer

from sfboost.cli import options as o
from sfboost.cli.console import speaking
from sfboost.cli.inputs import read_training
from sfboost.cli.proposal import proposal_lines, rank_columns


@speaking
def propose(
    *,
    context: typer.Context,
    train: o.TrainTable,
    columns: o.ColumnOptions,
    csv: o.CsvOptions,
    config: o.Config = None,
    talk: o.VoiceOptions,
) -> None:
    """Rank the columns by how far their relation to the class drifts between source domains.

    Drift: how far one domain's share of the class, given the column, is from that of the others, and the
    most that the rows leave possible. Cost: accuracy lost without the column, source domains left out in
    turn; below zero the others do better without it. What you know of a column counts for more: say it with
    --stable.
    """
    voice = talk.voice()
    training, _ = read_training(train, replace(columns, stable="auto"), csv)
    voice.note(*training.remarks)
    with voice.waiting("Ranking the columns"):
        selection, proposal = rank_columns(training)
    lines = proposal_lines(proposal)
    lines.append(selection.sentence)
    voice.result({"status": selection.status, "proposal": proposal, "sentence": selection.sentence}, *lines)
