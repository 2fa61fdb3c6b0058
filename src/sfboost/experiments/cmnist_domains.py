"""ColoredMNIST over eleven agreements of colour and label: adaptive baselines, curves of the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfboost.experiments.cmnist import AT_RANDOM, ORACLE_CHOICE, RANDOM, sfb_rows
from sfboost.experiments.colored import (
    AGREEMENTS,
    DATASET,
    NEEDS,
    PROTOCOL,
    adapted,
    group,
    models,
    with_sfb,
)
from sfboost.experiments.experiment import Experiment, Records
from sfboost.experiments.figures import draw_panels
from sfboost.experiments.paper import paper_table
from sfboost.experiments.tables import Column, Row, Table, make_table
from sfboost.experiments.work import Group

ROUNDS = 5
COLUMNS = tuple(Column(f"{a:.1f}", DATASET, f"test-{a}") for a in AGREEMENTS)
ADAPTERS = {"none": "", "t3a": "+T3A", "pl-last": "+PL(last)", "pl-all": "+PL(all)"}
#: The curves of Figure 2, right: what is left of SFB without rounds, calibration, correction.
PARTS: dict[str, dict[str, Any]] = {
    "SFB, 5 rounds": {"rounds": 5},
    "SFB, 1 round": {"rounds": 1},
    "SFB, 1 round, uncalibrated": {"rounds": 1, "calibrated": False},
    "SFB, 1 round, uncalibrated, uncorrected": {"rounds": 1, "calibrated": False, "correct": False},
}


def plan(seeds: int, quick: bool) -> list[Group]:
    """Return one group per seed, and one per seed and agreement for the oracle's curve."""
    groups = []
    for seed in range(seeds):
        runs = []
        for name in ("erm", "irm"):
            for model in models(name, seed, quick):
                runs += [model, *(adapted(model, a) for a in ADAPTERS if a != "none")]
        runs += with_sfb(seed, quick, ROUNDS)
        runs += [adapted(m, "sfb-paper", **c) for m in models("sfb", seed, quick) for c in PARTS.values()]
        groups.append(group(runs))
        groups.append(group(models("erm", seed, quick, data=AT_RANDOM)))
    return groups


def rows() -> tuple[Row, ...]:
    """Return the rows; adapters meet the model that was chosen without adaptation."""
    baselines = [
        Row(
            f"{trainer.upper()}{suffix.replace('+', ' + ')}",
            trainer,
            adapter,
            test_access="none" if adapter == "none" else "unlabelled",
            paper=f"{trainer.upper()}{suffix}",
            **ORACLE_CHOICE,
        )
        for trainer in ("erm", "irm")
        for adapter, suffix in ADAPTERS.items()
    ]
    grey = Row("Oracle, no adaptation", "erm", **RANDOM, **ORACLE_CHOICE)
    return (*baselines, *sfb_rows(ROUNDS), grey)


def tables(records: Records) -> list[Table]:
    """Return the table over domains, and the parts of SFB as in Figure 2."""
    paper = paper_table("cmnist-domains")
    main = make_table(paper.title, rows(), COLUMNS, records, paper)
    parts = [
        Row(name, "sfb", "sfb-paper", test_access="unlabelled", paper=name, adapter_hyper=_exactly(hyper))
        for name, hyper in PARTS.items()
    ]
    parts += [Row("SFB, no adaptation", "sfb", paper="SFB no adpt.")]
    curves = paper_table("figure2")
    return [main, make_table("The parts of SFB, on features of ours", parts, COLUMNS, records, curves)]


def _exactly(hyper: dict[str, Any]) -> dict[str, Any]:
    return {"rounds": 1, "calibrated": True, "correct": True, **hyper}


def figure(records: Records, path: Path) -> Path:
    """Draw both panels of Figure 2 and the motivating Figure 1b."""
    main, parts = tables(records)
    few = ("ERM", "IRM", "IRM + PL(all)", "IRM + T3A", "SFB (paper)", "SFB (ours)")
    ideal = ("ERM", "Oracle, no adaptation", "SFB (ours)")
    panels = {
        "Methods (Figure 2, left)": (main, few),
        "Parts of SFB (Figure 2, right)": (parts, tuple(row.label for row, _ in parts.rows)),
        "What there is to gain (Figure 1b)": (main, ideal),
    }
    return draw_panels(panels, AGREEMENTS, path, xlabel="agreement of colour and label in the test domain")


EXPERIMENT = Experiment(
    "cmnist-domains",
    "ColoredMNIST over eleven agreements: ERM and IRM with T3A and pseudo-labels, SFB; Figures 1b and 2",
    seeds=10,
    quick_seeds=1,
    plan=plan,
    tables=tables,
    figure=figure,
    needs=NEEDS,
    protocol=PROTOCOL,
)
