"""What every public path answers on small fixed data: `CASES`, each a function to a tree of plain values.

`answer=` is always said, because the default is a choice of its own.
"""

import csv
import hashlib
import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from golden_data import (
    ANSWERS,
    SHOWN,
    answer_of,
    draw,
    few_labels,
    fitted,
    frame,
    new_rows,
    training,
    weights,
)
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
from sklearn.naive_bayes import GaussianNB

import sfboost
from sfboost import Settings, StableFeatureBoosting, Training
from sfboost.adaptation import adapt
from sfboost.calibration import fit_temperature
from sfboost.shift import DomainData, Reference, change_in

#: Whether f_S is kept where the rows are too few, or f_S says too little.
REFUSE = {"refused where it should": True, "never refused": False}


def arrays():
    """The engine on arrays: where it may refuse and where not, corrections, ways of transport, heads."""
    found = {}
    for n_classes in (2, 3):
        X, y = new_rows(n_classes)
        stable, U = fitted(n_classes).predict_stable_proba(X), X[:, n_classes:]
        known = Training(source_prior=np.full(n_classes, 1.0 / n_classes))
        calls = {name: {"refuse": refuse} for name, refuse in REFUSE.items()}
        if n_classes == 2:
            calls["weights"] = {"sample_weight": weights(len(U))}
            calls["few labels"] = {"y": few_labels(y)}
            calls["all labels"] = {"y": y}
            calls["wrapped head"] = {"settings": Settings(head=GaussianNB())}
            calls["EM"] = {"settings": Settings(rounds=5)}
            for labels in ("hard", "sampled"):
                calls[f"{labels} pseudo-labels"] = {
                    "settings": Settings(correction="posthoc", pseudo_labels=labels)
                }
        calls["the paper's method"] = {"settings": Settings("paper")}
        calls["label shift"] = {"transport": "likelihood", "training": known}
        for correction in ("posthoc", "none"):
            calls[correction] = {"settings": Settings(correction=correction)}
        for name, call in calls.items():
            found[f"{n_classes} classes, {name}"] = answer_of(adapt(stable, U, **call), stable, U)
    X, _ = new_rows(n_rows=12)
    stable = fitted().predict_stable_proba(X)
    for name, refuse in REFUSE.items():
        few = adapt(stable, X[:, 2:], refuse=refuse)
        found[f"few rows, {name}"] = answer_of(few, stable, X[:, 2:])
    return found


def estimator():
    """`StableFeatureBoosting`: fit, adapt, predict, explain, evaluate, search."""
    found = {}
    for n_classes in (2, 3):
        model, X = fitted(n_classes), new_rows(n_classes)[0]
        found[f"{n_classes} classes, stable"] = {
            "probabilities": model.predict_stable_proba(X[:SHOWN]),
            "temperature": model.temperature_.temperature,
            "leak": model.training_.leak,
            "source_prior": model.training_.source_prior,
            "gain": model.training_.evidence.gain,
        }
        found[f"{n_classes} classes, pooled"] = {"probabilities": model.predict_proba(X[:SHOWN])}
        for answer in ANSWERS:
            adapted = model.adapt(X, answer=answer)
            found[f"{n_classes} classes, {answer}"] = answer_of(adapted, X)
    model, X = fitted(), new_rows()[0]
    found["weights of new rows"] = answer_of(model.adapt(X, sample_weight=weights(len(X)), answer="safe"), X)
    paper = model.adapt(X, settings=Settings("paper"))
    found["the paper's method"], explanation = answer_of(paper, X), paper.explain(X[0])
    found["explanation"] = {
        name: getattr(explanation, name) for name in ("stable", "unstable", "prior", "joint", "features")
    }
    X_train, y_train, domain = training()
    weighted = StableFeatureBoosting([0, 1]).fit(
        X_train, y_train, sample_domain=domain, sample_weight=weights(len(y_train))
    )
    found["weights of training rows"] = answer_of(weighted.adapt(X, answer="safe"), X)
    others = {
        "calibrated by ECE": {"calibration": "ece"},
        "calibrated with a bias": {"calibration_bias": True, "calibration_weights": "pooled"},
        "a validation domain": {"validation_domain": "south"},
        "label shift": {"transport": "likelihood"},
        "other classifiers": {"stable": GaussianNB(), "unstable": LogisticRegression()},
    }
    for name, parameters in others.items():
        found[name] = answer_of(fitted(**parameters).adapt(X, answer="best"), X)
    evaluation = StableFeatureBoosting([0, 1]).evaluate(X_train, y_train, domain, answer="safe")
    found["evaluation"] = {"rows": evaluation.rows(), "gain": evaluation.gain}
    return found


def best():
    """The decision: where nothing moved, where a meaning did, with some labels; and the same on arrays."""
    found = {}

    def decided(made, *rows):
        return {
            "decision": made.decision_,
            "probabilities": made.predict_proba(*(part[:SHOWN] for part in rows)),
            "weights": made.weights_,
            "change": made.shift_.unstable.verdict,
            "p_value": made.shift_.unstable.p_value,
        }

    for n_classes in (2, 3):
        model = fitted(n_classes)
        for agreement in (0.85, 0.1):
            X, y = draw(agreement, 50, 500, n_classes)
            for labels in (None, few_labels(y)):
                made = model.adapt(X, y=labels, answer="best")
                name = f"{n_classes} classes, agreement {agreement}{', few labels' if labels else ''}"
                found[name] = decided(made, X)
    X, y, domain = training()
    stable = fitted()
    known = sfboost.learn_training(stable.predict_stable_proba(X), X[:, 2:], y, domain)
    X_new, _ = new_rows()
    pairs = stable.predict_stable_proba(X_new), X_new[:, 2:]
    for answer in ANSWERS:
        made = sfboost.adapt(*pairs, training=known, answer=answer)
        found[f"arrays, {answer}"] = decided(made, *pairs)
    return found | {"arrays": made.shift_.unstable.to_dict()}


def frames():
    """Tables with text and gaps, of pandas and polars."""
    import polars

    X, y, domain, X_new = frame()
    found = {}
    for name, read in {"pandas": lambda table: table, "polars": polars.from_pandas}.items():
        model = StableFeatureBoosting(["age", "chol"]).fit(read(X), y, sample_domain=domain)
        found[name] = answer_of(model.adapt(read(X_new), answer="safe"), read(X_new))
        found[name]["columns"] = [model.stable_columns_.names, model.unstable_columns_.names]
    return found


def embeddings():
    """No column is known to be stable: directions of the new rows, as docs/adaptation.md has it."""
    X, y, domain = training(3)
    X_new, _ = new_rows(3)
    turn = np.linalg.qr(np.random.RandomState(5).standard_normal((6, 6)))[0]
    X, X_new = X @ turn, X_new @ turn
    classifier = LogisticRegression(C=0.01, max_iter=1000, tol=1e-8)
    left_out = cross_val_predict(
        classifier, X, y, groups=domain, cv=LeaveOneGroupOut(), method="predict_log_proba"
    )
    temperature = fit_temperature(left_out, y, domain=domain)
    stable = np.exp(temperature.apply(classifier.fit(X, y).predict_log_proba(X_new)))
    directions = PCA(3).fit(X_new).transform(X_new)
    return {
        answer: answer_of(sfboost.adapt(stable, directions, answer=answer), stable, directions)
        for answer in ANSWERS
    }


def selection():
    """`StableFeatureSelector`, both kinds, and stable_features="auto"."""
    X, y, domain = training()
    found = {}
    for kind in ("posterior", "likelihood"):
        selector = sfboost.StableFeatureSelector(kind, tolerance=0.3).fit(X, y, sample_domain=domain)
        found[kind] = {
            "status": selector.status_,
            "support": selector.support_,
            "ranking": selector.ranking_,
            "columns": [vars(column) for column in selector.selection_.columns],
        }
    search = sfboost.StableFeatureSelector(tolerance=0.3)
    auto = StableFeatureBoosting(search).fit(X, y, sample_domain=domain)
    found["auto"] = answer_of(auto.adapt(new_rows()[0], answer="safe"), new_rows()[0])
    return found


def diagnosis():
    """`StableFeatureBoosting.diagnose`: verdicts and figures of every check."""
    X, y, domain = training()
    report = StableFeatureBoosting([0, 1]).diagnose(X, y, domain, new_rows()[0])
    whole = {"verdict": report.verdict, "skipped": [name for name, _ in report.skipped]}
    return {"whole": whole} | {result.check: result.to_dict() for result in report}


def change():
    """`change_in`: a new domain that speaks as before, and one that does not."""

    def views(agreement, seed):
        X, y = draw(agreement, seed)
        return DomainData.of(stable.predict_proba(X[:, :2]), X[:, 2:], pooled.predict_proba(X)), y

    X, y, _ = training()
    stable, pooled = LogisticRegression(tol=1e-8).fit(X[:, :2], y), LogisticRegression(tol=1e-8).fit(X, y)
    own, labels = zip(
        *(views(agreement, 30 + i) for i, agreement in enumerate((0.95, 0.85, 0.7))), strict=True
    )
    reference = Reference.learn(own, labels, ("north", "south", "east"))
    return {
        f"agreement {agreement}": change_in(reference, views(agreement, 40)[0]).to_dict()
        for agreement in (0.85, 0.1)
    }


def network():
    """`SFBClassifier`, tiny: both answers."""
    import torch

    from sfboost.torch import Plan, SFBClassifier

    X, y, domain = training()
    held_out = [draw(agreement, 20 + i, 300) for i, agreement in enumerate((0.95, 0.7))]
    held_out = (*(np.concatenate(part) for part in zip(*held_out, strict=True)), np.repeat(["a", "b"], 300))
    X_new, _ = new_rows()
    plan = Plan(steps=40, unstable_steps=20, learning_rate=0.01, precision="float64")
    found = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = SFBClassifier("small", plan=plan)
        model.fit(X, y, sample_domain=domain, validation=held_out)
        found["stable"] = {
            "probabilities": model.predict_stable_proba(X_new[:SHOWN]),
            "loss": model.history_[-1]["total"],
            "temperature": model.temperature_.temperature,
        }
        for answer in ANSWERS:
            found[answer] = answer_of(model.adapt(X_new, answer=answer), X_new)
    finally:
        torch.set_num_threads(threads)
    return found


def command():
    """The command's JSON, and its table of predictions."""
    import hospitals
    import pandas as pd
    from typer.testing import CliRunner

    from sfboost.cli.app import app

    def run(*words):
        done = CliRunner().invoke(app, [str(word) for word in (*words, "--json")])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    rng = np.random.RandomState(0)
    places = {"north": 1.0, "south": 0.6, "east": 0.8}
    parts = [hospitals.draw(name, 150, rng, heart) for name, heart in places.items()]
    west = hospitals.draw("west", 400, rng, -1.0).drop(columns=["sick", "hospital"])
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        names = ("train.csv", "new.csv", "model.sfb", "adapted.sfb", "predictions.csv")
        train, new, model, adapted, out = (Path(folder, name) for name in names)
        pd.concat(parts).to_csv(train, index=False)
        west.to_csv(new, index=False)
        found["fit"] = run("fit", train, *hospitals.ROLES, "--no-evaluate", "-o", model)
        for answer in ("best", "safe"):
            found[f"adapt, {answer}"] = run("adapt", model, new, "--answer", answer, "-o", adapted)
            found[f"predict, {answer}"] = run("predict", adapted, new, "-o", out)
            found[f"predictions, {answer}"] = pd.read_csv(out).head(SHOWN).to_dict("records")
        found["explain"] = run("explain", adapted, new, "--row", "1")
        found["run"] = run(
            "run", train, new, *hospitals.ROLES, "--answer", "safe", "--no-evaluate", "-o", out
        )
        found["check"] = run("check", train, new, *hospitals.ROLES)
        found["evaluate"] = [row["scores"] for row in run("evaluate", train, *hospitals.ROLES)["domains"]]
    return found


#: Columns of an exported table; others may come.
KEPT = (
    "method",
    "test_access",
    "oracle",
    "column",
    "mean",
    "standard_error",
    "seeds",
    "paper_mean",
    "difference",
)


def _tables(*names):
    """Digests of the tables, every digit; `sfboost-lab results export NAME -f csv` shows them."""
    from sfboost_lab.experiments.committed import committed_records
    from sfboost_lab.experiments.registry import EXPERIMENTS
    from sfboost_lab.experiments.rendering import to_csv

    found, read = {}, cache(committed_records)
    for name in names:
        experiment = EXPERIMENTS[name]
        records = experiment.own(read(experiment.protocols[0]), quick=False)
        for table in experiment.tables({run: record for run, record in records.items() if record.ok}):
            rows = [[row[key] for key in KEPT] for row in csv.DictReader(to_csv(table).splitlines())]
            digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]
            found.setdefault(name, {})[table.title] = digest
    return found


def tables():
    """Tables from records, of the experiments that are quick to read."""
    return _tables("corrections", "sample-size")


def large_tables():
    """Tables from records, of the others."""
    colours = ("cmnist", "cmnist-domains", "ablations", "penalties")
    return _tables("synthetic", "pacs", *colours)


#: Name → how it is made, and the packages that it needs.
CASES = {
    "arrays": (arrays, ()),
    "estimator": (estimator, ()),
    "best": (best, ()),
    "frames": (frames, ("pandas", "polars")),
    "embeddings": (embeddings, ()),
    "selection": (selection, ()),
    "diagnosis": (diagnosis, ()),
    "change": (change, ()),
    "network": (network, ("torch", "safetensors")),
    "command": (command, ("typer", "pandas", "pyarrow", "jinja2", "skops")),
    "tables": (tables, ()),
    "large tables": (large_tables, ()),
}
#: Those that `make test-long` looks at.
LONG = {"large tables"}
