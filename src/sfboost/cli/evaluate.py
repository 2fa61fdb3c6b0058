"""`sfboost evaluate`: what would adapting have gained on my own domains."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import typer

from sfboost.adaptation.scores import LOSSES, METRIC_NAMES, POINTS
from sfboost.boosting import DomainEvaluation
from sfboost.boosting.evaluation import MOST_FITS, MOST_ROWS, able_to_play, rows_to_learn
from sfboost.boosting.metrics import is_rare, mean_shares
from sfboost.boosting.scored_domains import ANSWER, SKIPPED, why_skipped
from sfboost.cli import options as o
from sfboost.cli.console import Line, speaking
from sfboost.cli.inputs import read_training
from sfboost.cli.options import judged_by
from sfboost.cli.project import configure
from sfboost.foreign_text import plain
from sfboost.report.training import evaluation_rows
from sfboost.report.words import in_words

# Domains that are told one by one: whose reasons, and among whom one sees the worst.
_MOST_TOLD = 10


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
    """Let each domain play the new one, labels hidden, and score what came of it.

    Stable: no adaptation. Answer: what would have been decided, without labels. Pooled: one classifier of all
    features. Labelled (ORACLE): adapted with the domain's own labels, which nobody has for a new domain.
    Regret: by how much the best candidate beats the answer. P: of the test for a changed meaning.
    """
    voice = talk.voice()
    training, _ = read_training(train, columns, csv)
    model = judged_by(o.make_model(context), counting, training.y)
    voice.note(*training.remarks)
    model = configure(training, model)
    if rows_to_learn(model, training.y, training.domain).size < len(training.y):
        voice.note(
            f"Of a domain with more than {MOST_ROWS} rows about as many are learned from, drawn at random, "
            "when another one plays the new one: more would not move the scores. Every row is scored."
        )
    playing = len(able_to_play(training.domain))
    if playing > MOST_FITS:
        voice.note(
            f"{playing} domains play the new one, left out in {MOST_FITS} groups: each is answered by "
            "itself, by a model that saw none of its group. One by one would take a fit for each."
        )
    with voice.waiting("Letting each domain play the new one"):
        evaluation = model.evaluate(training.X, training.y, training.domain)
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
    reasons = {
        kind: {str(d.domain): in_words(d.reason) for d in evaluation.domains if d.decision == kind}
        for kind in ("kept stable", SKIPPED)
    }
    kept = [
        f"{name}: kept stable. {reason[:1].upper()}{reason[1:]}"
        for name, reason in reasons["kept stable"].items()
    ]
    lines += kept[:_MOST_TOLD]
    if len(kept) > _MOST_TOLD:
        lines.append(f"and {len(kept) - _MOST_TOLD} more domains kept stable (--json has all)")
    lines += why_skipped(reasons[SKIPPED])
    metric = evaluation.metric
    scale, digits, unit = (100, 1, " points") if metric in POINTS else (1, 3, "")
    scale *= -1 if metric in LOSSES else 1
    gains = []
    for method, words in (("stable", "the stable features alone"), ("pooled", "pooled")):
        over = evaluation.gains_over(method)
        if np.isfinite(over).any():
            mean, worst = scale * np.nanmean(over), scale * np.nanmin(over)
            many = len(evaluation.scored) > _MOST_TOLD  # of few one sees which it is
            where = f", {evaluation.domains[int(np.nanargmin(over))].domain}" * many
            gains.append(f"{mean:+z.{digits}f}{unit} against {words} ({worst:+z.{digits}f} at worst{where})")
    told = f"The answer would have changed {METRIC_NAMES[metric]} by {' and '.join(gains)}."
    regret, most = (
        abs(scale) * value for value in (evaluation.regret, np.nanmax([d.regret for d in evaluation.domains]))
    )
    short = (
        "The best candidate of each domain, which only its labels tell, would have been "
        f"{regret:z.{digits}f}{unit} better on average, {most:z.{digits}f} at most{_whose(evaluation)}."
    )
    return [*lines, ((told, "bold"),), short, *_beside_accuracy(evaluation)]


def _whose(evaluation: DomainEvaluation) -> str:
    """Which candidate it was, if one was better than the answer in half of the domains or more."""
    ahead = Counter(domain.best for domain in evaluation.domains if domain.regret > 0.0)
    name, count = ahead.most_common(1)[0] if ahead else ("", 0)
    n_played = len(evaluation.scored)
    return f"; it was {name!r} in {count} of {n_played}" * (2 * count >= n_played)


def _beside_accuracy(evaluation: DomainEvaluation) -> list[Line]:
    """Where classes are skewed: means of what says more of the smallest than accuracy does."""
    if not evaluation.skewed or evaluation.metric != "accuracy":
        return []
    means = []
    for metric, form in (("balanced_accuracy", ".1%"), ("auroc", ".3f")):
        known = {method: evaluation.mean(method, metric) for method in ("stable", ANSWER, "pooled")}
        told = [
            f"{method} {value:{form}}"
            for method, value in known.items()
            if value == value  # that of one class, or of many, has no value
        ]
        means += [f"{METRIC_NAMES[metric]} {', '.join(told)}"] if told else []
    if not means:
        return []
    shown = "; ".join(means).replace("%", " %")
    better = "auroc" if METRIC_NAMES["auroc"] in shown else "balanced_accuracy"
    every = [domain.shares for domain in evaluation.domains]
    shares = mean_shares(every)
    why = (
        f"A class is rare ({min(shares):.0%} of the rows), and accuracy says little of it."
        if is_rare(every)
        else f"Always naming the most frequent class would be right in {max(shares):.0%} of the rows."
    ).replace("%", " %")
    return [f"{why} Means: {shown}. --metric {better} chooses and compares by it."]
