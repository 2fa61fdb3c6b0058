"""Golden outputs: small fixed data, what is kept of an answer, and how two answers are compared."""

import math
from pathlib import Path

import numpy as np

from sfboost import StableFeatureBoosting

EXPECTED = Path(__file__).parents[1] / "golden" / "expected.json"
ANSWERS = ("best", "safe")
#: Rows whose probabilities are kept.
SHOWN = 4
#: Numbers agree to this, relative or absolute: other processors and libraries add up in another order.
TOLERANCE = 1e-6
#: One check bins f_S: a rounding error may move a row to the next bin.
BINNED, BINNED_TOLERANCE = "complementarity, new domain", 1e-2
#: Words for people, which may get better without another answer; and where a file was written.
WORDS = {"reason", "sentence", "remedy", "number", "why", "remarks", "file", "files"}


def draw(agreement, seed, n_rows=300, n_classes=2):
    """Rows of one hospital: K stable columns, then K unstable ones that agree with the label so often.

    numpy promises that the numbers of a RandomState never change.
    """
    rng = np.random.RandomState(seed)
    y = rng.randint(n_classes, size=n_rows)
    seen = np.where(rng.random_sample(n_rows) < agreement, y, (y + 1) % n_classes)
    centre = np.hstack([np.eye(n_classes)[y], 1.5 * np.eye(n_classes)[seen]])
    return centre + 0.7 * rng.standard_normal(centre.shape), y


def training(n_classes=2):
    parts = [draw(agreement, seed, 200, n_classes) for seed, agreement in enumerate((0.95, 0.8, 0.7))]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return X, y, np.repeat(["north", "south", "east"], 200)


def new_rows(n_classes=2, n_rows=500):
    return draw(0.1, 7, n_rows, n_classes)


def few_labels(y, every=25):
    """Labels of some rows, None elsewhere."""
    return [label if i % every == 0 else None for i, label in enumerate(y)]


def weights(n_rows):
    return 0.5 + np.arange(n_rows) % 3


def fitted(n_classes=2, **parameters):
    X, y, domain = training(n_classes)
    model = StableFeatureBoosting(list(range(n_classes)), **parameters)
    return model.fit(X, y, sample_domain=domain)


def frame():
    """Text, missing cells and whole numbers beside measurements, in three hospitals and a new one."""
    import pandas as pd

    X, y, domain = training()
    X_new, _ = new_rows()
    rows = np.vstack([X, X_new])
    table = pd.DataFrame(rows, columns=["age", "chol", "heart", "scan"])
    table["ward"] = np.where(rows[:, 2] > 0.6, "A", np.where(rows[:, 3] > 0.9, "B", "C"))
    table.loc[::17, "chol"] = np.nan
    table["beds"] = (10 * rows[:, 3]).round().astype(int)
    return table.iloc[: len(X)], y, domain, table.iloc[len(X) :]


def answer_of(adapted, *rows):
    """Of an `Adaptation` (stable probabilities, unstable features) or of an adapted classifier (X)."""
    adaptation = getattr(adapted, "adaptation", adapted)
    tree = {
        "decision": getattr(adapted, "decision_", adaptation.decision.kind),
        "probabilities": adapted.predict_proba(*(part[:SHOWN] for part in rows)),
        "mean": adapted.predict_proba(*rows).mean(axis=0),
        "prior": adaptation.prior,
        "confusion": adaptation.confusion,
        "informativeness": adaptation.informativeness,
        "rounds": adaptation.rounds,
    }
    if adaptation.cross_fit is not None:
        tree["l2"] = adaptation.cross_fit.l2
    return tree


def plain(value):
    """Arrays, records and numbers as JSON has them; words for people are left out."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items() if name not in WORDS}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        if value and all(isinstance(part, dict) and "verdict" in part for part in value):
            return {_name(part): plain(part) for part in value}  # more checks are no other answer
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return float(f"{value:.8g}") if math.isfinite(value) else str(value)
    return value


def _name(check):
    return " ".join(str(check[key]) for key in ("check", "name", "where") if key in check)


def differences(expected, got, where=""):
    """Where a tree is not as expected. It may hold more: a new figure is no other answer."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for name, part in expected.items():
            here = f"{where} / {name}"
            yield from differences(part, got[name], here) if name in got else [f"{here} is gone"]
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for i, (one, other) in enumerate(zip(expected, got, strict=True)):
            yield from differences(one, other, f"{where} [{i}]")
    elif not _same(expected, got, BINNED_TOLERANCE if BINNED in where else TOLERANCE):
        yield f"{where}: {got!r}, expected {expected!r}"


def _same(expected, got, tolerance):
    if isinstance(expected, float) and isinstance(got, float | int):
        return math.isclose(expected, got, rel_tol=tolerance, abs_tol=tolerance)
    return expected == got
