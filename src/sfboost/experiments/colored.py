"""What the experiments on ColoredMNIST share: rows, places, methods, and the groups of one seed.

Protocol of the published code: 25 000 images a training domain (agreement 0.9 and 0.8), 10 000 for
validation, 10 000 for test. 400 steps of empirical risk serve every penalty; then 200 steps under it. The
paper chooses on validation images coloured like the test domain: those rows are marked ORACLE.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfboost.datasets import load
from sfboost.experiments.measuring import fit_by_contract, measure_run
from sfboost.experiments.methods import adapter_hyper, trainer_hyper, tuned
from sfboost.experiments.places import Material, labelled, place_of
from sfboost.experiments.record import Measured
from sfboost.experiments.run import Run
from sfboost.experiments.work import Group, Session

PROTOCOL = "cmnist"
DATASET = "colored_mnist"
AGREEMENTS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)

#: The sweeps of the published code, by trainer; the paper's own for SFB.
SWEEPS: dict[str, list[dict[str, Any]]] = {
    "erm": [{"steps": steps} for steps in (0, 200, 600)],  # 400, 600 and 1000 in all
    "groupdro": [{"step_size": size} for size in (0.001, 0.01, 0.1, 0.5, 1.0)],
    "irm": [{"weight": weight} for weight in (1e3, 5e3, 1e4, 5e4, 1e5)],
    "vrex": [{"weight": weight} for weight in (1e3, 5e3, 1e4, 5e4, 1e5)],
    "iga": [{"weight": weight} for weight in (1e3, 5e3, 1e4, 5e4, 1e5)],
    "sd": [{"weight": weight} for weight in (1, 5, 10, 50, 100)],
    "eqrm": [{"log_tail": tail} for tail in (-100, -500, -1000, -5000, -10000)],
    "fishr": [{}],
    "sfb-paper": [{"stability_weight": weight} for weight in (50, 100, 500, 1000, 5000)],
    "sfb": [{}],
}
#: Our adaptation on learned features.
OURS = {"correction": "posthoc"}
#: A few minutes: small batches, few steps, one setting each.
QUICK = {"batch_size": 1250, "learning_rate": 3e-4, "network": "mlp"}
_QUICK_STEPS = {"pretrain_steps": 60, "steps": 60}


def models(
    trainer: str,
    seed: int,
    quick: bool,
    changes: Iterable[Mapping[str, Any]] | None = None,
    data: Mapping[str, Any] | None = None,
) -> list[Run]:
    """Return the runs of a trainer's sweep, unadapted; in a quick one its middle setting alone."""
    sweep = list(SWEEPS[trainer] if changes is None else changes)
    if quick:
        steps = {} if trainer == "sfb" else _QUICK_STEPS
        middle = {k: v for k, v in sweep[len(sweep) // 2].items() if k != "steps"}
        sweep = [{**middle, **QUICK, **steps}]
    protocol = f"{PROTOCOL}-quick" if quick else PROTOCOL
    return [
        Run(
            DATASET, trainer, seed, protocol, hyper=trainer_hyper(trainer, DATASET, **chosen), data=data or {}
        )
        for chosen in sweep
    ]


def group(runs: Sequence[Run]) -> Group:
    """Return the group of one seed: it reads the images once and pretrains once."""
    return Group(f"{__name__}:measure", tuple(runs))


def adapted(model: Run, adapter: str, **changes: Any) -> Run:
    """Return the run that adapts a model. The paper's head has its rate and steps chosen on held-out rows."""
    hyper = adapter_hyper(adapter, DATASET, **changes)
    if adapter.startswith("sfb-paper"):
        hyper = tuned(hyper, "held/", learning_rate=(0.1, 0.01), steps=(5, 10, 15, 20))
    return replace(model, adapter=adapter, adapter_hyper=hyper)


def parts(
    rounds: int = 1, *, correct: bool = True, stable: bool = True, unstable: bool = False
) -> dict[str, Any]:
    """Return which parts of the paper's adaptation are on: bias correction, calibration of f_S and of f_U."""
    return {
        "rounds": rounds,
        "correct": correct,
        "calibrated": stable,
        "calibrate_unstable": unstable,
    }


def sfb_runs(trainer: str, seed: int, quick: bool, rounds: int = 3) -> list[Run]:
    """Return the runs of SFB, "sfb-paper" or "sfb" (ours), without and with adaptation."""
    runs = []
    for model in models(trainer, seed, quick):
        runs += [model, adapted(model, "sfb-paper", **parts(rounds))]
        runs += [adapted(model, "sfb", **OURS)] if trainer == "sfb" else []
    return runs


def material(run: Run) -> Material:
    """Return the rows of a run. The validation images serve as held-out rows and as ORACLE places."""
    dataset = load(DATASET, random_state=run.data_seed, **run.data)
    places = [place_of(dataset, name) for name in dataset.test]
    places += [
        place_of(dataset, h, f"held/{t}") for t, h in zip(dataset.train, dataset.validate, strict=True)
    ]
    places += [place_of(dataset, "oracle-0.1", "oracle/test-0.1")]
    validation = labelled(dataset, dataset.validate, names=dataset.train)
    return Material(labelled(dataset, dataset.train), validation, tuple(places), validation)


def measure(run: Run, session: Session) -> Measured:
    """Measure one run."""
    return measure_run(run, session, material, fit_by_contract, stress_rows=5000)
