"""PACS and Camelyon17 on frozen features: what the two experiments share.

The paper fine-tunes a ResNet-18. Here the features of an EfficientNet-Lite0 with ImageNet weights are
computed once (and cached by content), and every method trains a linear layer on them: the methods can be
compared with each other, their level not with the paper's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfboost.datasets import Dataset
from sfboost_lab.datasets import load
from sfboost_lab.experiments.grouped_runs import Group, Session
from sfboost_lab.experiments.measured_domains import Place, RunRows, place_of, rows_at
from sfboost_lab.experiments.measuring import fit_by_contract, measure_run
from sfboost_lab.experiments.methods import adapter_hyper, trainer_hyper
from sfboost_lab.experiments.record import Measured
from sfboost_lab.experiments.rules import Rule
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.tables import Row

NOTE = (
    "Ours: linear layers on frozen EfficientNet-Lite0 features. The paper fine-tunes a ResNet-18, so the "
    "difference is one of networks as well. Our ± is over draws of the held-out training pictures and of "
    "training; every seed is scored on the same test pictures, so what other test pictures would change is "
    "not in it."
)
_HELD_OUT = 0.2
_PRESET = "pacs"  # of linear layers on frozen features, whatever they show
#: Trainer → its sweep: a part of the paper's for SFB, of that of the code it builds on for IRM.
SWEEPS: dict[str, list[dict[str, Any]]] = {
    "erm": [{}],
    "irm": [{"weight": weight} for weight in (0.1, 1, 10)],
    "actir": [{}],
    "sfb-paper": [{"stability_weight": s, "independence_weight": c} for s in (0.1, 1, 10) for c in (0.1, 1)],
    "sfb": [{"stability_weight": weight} for weight in (1, 10)],
    "left-out-linear": [{}],
}
#: Trainer → its adapters.
ADAPTERS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "erm": [("pl-last", {})],
    "irm": [("pl-last", {})],
    "actir": [],
    "sfb-paper": [("sfb-paper", {})],
    "sfb": [("sfb", {"correction": "posthoc"})],
    "left-out-linear": [("sfb-components", {"n_components": n}) for n in (4, 8, 16)],
}
_ONE_SETTING = ("erm", "actir")


def rows(rule: Rule, *, found: str = "") -> tuple[Row, ...]:
    """Return the rows of the paper's tables; what is swept is chosen by the rule.

    `found` says how the way of "SFB (ours)" was found, if that was on the pictures that are tested here.
    """
    made = []
    for name in ("ERM", "IRM"):
        chosen: dict[str, Any] = {"rule": rule} if name == "IRM" else {}
        made.append(Row(name, name.lower(), paper=name, **chosen))
        label, paper = f"{name} + PL", f"{name}+PL"
        made.append(Row(label, name.lower(), "pl-last", test_access="unlabelled", paper=paper, **chosen))
    made.append(Row("ACTIR", "actir", paper="ACTIR"))
    for label, trainer, adapter in (
        ("SFB (paper)", "sfb-paper", "sfb-paper"),
        ("SFB (ours), learned split", "sfb", "sfb"),
        ("SFB (ours)", "left-out-linear", "sfb-components"),
    ):
        here = found if adapter == "sfb-components" else ""
        seen: dict[str, Any] = {"knows": bool(here), "remark": here}
        row = Row(label, trainer, adapter, rule, test_access="unlabelled", paper="SFB", **seen)
        stable = replace(row, label=f"{label}, no adaptation", unadapted=True, test_access="none")
        made += [replace(stable, paper="SFB no adpt."), row]
    return tuple(made)


def groups(
    dataset: str,
    seeds: int,
    quick: bool,
    protocol: str,
    *,
    rule: Rule,
    train: Sequence[str],
    data: Mapping[str, Any],
) -> list[Group]:
    """Return one group per trainer and seed, with the runs that the rule needs besides."""
    made = []
    for seed in range(seeds):
        for trainer, sweep in SWEEPS.items():
            brief = {} if trainer == "left-out-linear" else {"steps": 150}
            chosen = [{**sweep[len(sweep) // 2], **brief}] if quick else sweep
            runs: list[Run] = []
            for setting in chosen:
                hyper = trainer_hyper(trainer, _PRESET, **setting)
                own = [Run(dataset, trainer, seed, protocol, data=data, hyper=hyper)]
                for adapter, changes in ADAPTERS[trainer]:
                    settings = adapter_hyper(adapter, _PRESET, **changes)
                    own.append(replace(own[0], adapter=adapter, adapter_hyper=settings))
                runs += _with_needed(own, None if trainer in _ONE_SETTING else rule, train)
            made.append(Group(f"{__name__}:measure", tuple(runs)))
    return made


def _with_needed(runs: Iterable[Run], rule: Rule | None, train: Sequence[str]) -> list[Run]:
    """Runs of one trained model stand together: the model is trained once."""
    runs = list(runs)
    needed = [run for own in runs for run in (rule.needs(own, train) if rule else ())]
    return [*runs, *sorted(needed, key=lambda run: str(run.left_out))]


def rows_of(run: Run) -> RunRows:
    """Return the features of a run; a fifth of each training domain is held out if nothing is already."""
    from sfboost.datasets.features import EfficientNetFeatures
    from sfboost_lab.datasets.picture_features import with_features

    options = dict(run.data)
    most, size = options.pop("most", None), options.pop("feature_size", 224)
    dataset = load(run.dataset, **options)
    dataset = with_features(dataset if most is None else _thinned(dataset, most), EfficientNetFeatures(size))
    rng = np.random.default_rng(run.data_seed)
    kept, held = [], []
    for name in dataset.train:
        X, y = dataset.xy(name)
        if f"{name}-held-out" in dataset.domain_names:
            kept.append(Place(name, X, y))
            held.append(Place(name, *dataset.xy(f"{name}-held-out")))
            continue
        order = rng.permutation(len(y))
        cut = round(_HELD_OUT * len(y))
        kept.append(Place(name, X[order[cut:]], y[order[cut:]]))
        held.append(Place(name, X[order[:cut]], y[order[:cut]]))
    places = [place_of(dataset, name, f"test-{name}") for name in dataset.test]
    places += [place_of(dataset, name, f"validate-{name}") for name in dataset.validate]
    places += [replace(place, name=f"held/{place.name}") for place in held]
    own = [place_of(dataset, name) for name in dataset.validate]
    return RunRows(rows_at(kept), rows_at(own or held), tuple(places))


def _thinned(dataset: Dataset, most: int) -> Dataset:
    """Pictures at equal distances, no more than this of each domain."""
    steps = [-(-len(domain) // most) for domain in dataset.domains]
    thinned = (replace(d, X=d.X[::n], y=d.y[::n]) for d, n in zip(dataset.domains, steps, strict=True))
    return replace(dataset, domains=tuple(thinned))


def measure(run: Run, session: Session) -> Measured:
    """Measure one run."""
    return measure_run(run, session, rows_of, fit_by_contract)
