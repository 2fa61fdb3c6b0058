"""`sfboost evaluate`: what would adapting gain, by leave-one-domain-out validation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import typer

from sfboost.adaptation.scores import LOSSES, METRIC_NAMES, POINTS
from sfboost.boosting import DomainEvaluation
from sfboost.boosting.scored_domains import SKIPPED, why_skipped
from sfboost.cli import options as o
from sfboost.cli.console import Line, speaking
from sfboost.cli.inputs import read_training
from sfboost.cli.options import judged_by
from sfboost.cli.project import stand_in_remarks, with_columns
from sfboost.foreign_text import plain
from sfboost.report.training import evaluation_rows
from sfboost.report.words import in_words


@speaking
def evaluate(
    *,
    context: typer.Context,
    train: o.TrainTable,
    columns: o.ColumnOptions,
    counting: o.ScoreOptions,
    csv: o.CsvOptions,
    config: o.Config = None,
    talk: o.VoiceOptions,
) -> None:
    """Leave each source domain out in turn, its labels hidden, and score what is answered there.

    Stable: the stable features alone. Answer: what would be decided, without labels. Pooled: one classifier
    of all features. Labelled (ORACLE): adapted with the domain's own labels, which nobody has for a target
    domain. Regret: by how much the best candidate beats the answer. P: of the test of shift.
    """
    voice = talk.voice()
    training, _ = read_training(train, columns, csv)
    model = judged_by(o.make_model(context), counting, training.y)
    voice.note(*training.remarks)
    with voice.waiting("Leaving each domain out"):
        rows = (training.X, training.y, training.domain)
        evaluation, proposal = with_columns(training, model, lambda model: model.evaluate(*rows))
    voice.note(*stand_in_remarks(training.roles, proposal))
    values = {
        "metric": evaluation.metric,
        "gain": evaluation.gain,
        "regret": evaluation.regret,
        "domains": evaluation_rows(evaluation),
    }
    voice.result(values, *_words(evaluation))


def _words(evaluation: DomainEvaluation) -> list[Line]:
    # A table of several lines: a line break in a name must not make one more.
    shown = DomainEvaluation(tuple(replace(d, domain=plain(str(d.domain))) for d in evaluation.domains))
    lines: list[Line] = [*shown.table("--json").split("\n")]
    lines += why_skipped(
        {str(d.domain): in_words(d.reason) for d in evaluation.domains if d.decision == SKIPPED}
    )
    metric = evaluation.metric
    scale, digits, unit = (100, 1, " points") if metric in POINTS else (1, 3, "")
    sign = -1 if metric in LOSSES else 1
    gains = []
    for method, words in (("stable", "the stable features alone"), ("pooled", "pooled")):
        over = sign * scale * np.array(evaluation.gains_over(method))
        if np.isfinite(over).any():
            where = evaluation.domains[int(np.nanargmin(over * sign))].domain
            mean, worst = np.nanmean(over), np.nanmin(over * sign) * sign
            gains.append(
                f"{mean:+z.{digits}f}{unit} against {words} ({worst:+z.{digits}f} at worst, {where})"
            )
    gain = f"The answer changes {METRIC_NAMES[metric]} by {' and '.join(gains)}."
    regret, most = scale * evaluation.regret, scale * np.nanmax([d.regret for d in evaluation.domains])
    lines += [
        ((gain, "bold"),),
        "The best candidate of each domain, which only its labels tell, is "
        f"{regret:z.{digits}f}{unit} better on average, {most:z.{digits}f} at most.",
    ]
    if evaluation.skewed and metric == "accuracy":
        lines.append("A class is rare, and accuracy says little of it: --metric auroc compares by that.")
    return lines
