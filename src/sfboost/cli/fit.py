"""`sfboost fit`: labelled rows of several domains in, a model file out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sfboost.cli import options as o
from sfboost.cli.console import Line, speaking
from sfboost.cli.inputs import read_training, refuse_collisions
from sfboost.cli.options import judged_by
from sfboost.cli.project import Project, check_model_name, learn, save_project, stand_in_remarks
from sfboost.cli.proposal import proposal_lines


@speaking
def fit(
    *,
    context: typer.Context,
    train: o.TrainTable,
    columns: o.ColumnOptions,
    output: Annotated[Path, typer.Option("-o", "--output", help="Model file to write, e.g. model.sfb.")],
    evaluate: o.Evaluate = True,
    counting: o.ScoreOptions,
    csv: o.CsvOptions,
    config: o.Config = None,
    talk: o.VoiceOptions,
) -> None:
    """Fit a model to labelled source domains and save it.

    The file keeps what a later report needs (shares, scores, verdicts), and no training row.
    """
    voice = talk.voice()
    check_model_name(output)
    refuse_collisions({"TRAIN": train, "--config": config}, {"-o": output})
    training, _ = read_training(train, columns, csv)
    voice.note(*training.remarks)
    with voice.waiting("Fitting"):
        model = judged_by(o.make_model(context), counting, training.y)
        project = learn(training, model, evaluate=evaluate)
        save_project(project, output)
    voice.note(*stand_in_remarks(project.roles, project.training.proposal))
    voice.result(_values(project, output), *_words(project, output))


def _values(project: Project, output: Path) -> dict[str, object]:
    model = project.model
    return {
        "rows": sum(domain.n_rows for domain in project.training.domains),
        "domains": [domain.name for domain in project.training.domains],
        "classes": [str(name) for name in np.asarray(model.classes_).tolist()],
        "stable": list(model.stable_columns_.sources),
        "unstable": list(model.unstable_columns_.sources or model.unstable_columns_.names),
        "evaluation": project.training.evaluation,
        "proposal": project.training.proposal,
        "checks": project.training.checks,
        "file": str(output),
    }


def _words(project: Project, output: Path) -> list[Line]:
    facts, model = project.training, project.model
    domains = ", ".join(f"{domain.name} ({domain.n_rows})" for domain in facts.domains)
    evidence = model.training_.evidence
    assert evidence is not None  # `fit` measures it
    lines: list[Line] = [
        f"fitted to {sum(domain.n_rows for domain in facts.domains)} rows of {len(facts.domains)} domains: "
        f"{domains}",
        f"stable: {'none is shown' if facts.nothing_stable else ', '.join(model.stable_columns_.sources)}",
        f"log loss of the stable predictor on held-out rows: {evidence.gain:.3f} ± "
        f"{evidence.standard_error:.3f} below that of the class shares alone",
    ]
    lines += proposal_lines(facts.proposal)
    violated = [check["check"] for check in facts.checks if check["verdict"] == "violated"]
    if violated:
        words = f"violated in training: {', '.join(violated)}"
        lines.append(((words, "yellow"), " (`sfboost check` says more)"))
    return [*lines, f"model: {output}"]
