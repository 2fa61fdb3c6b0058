"""Our confidence-based estimates beside those of NannyML, from the same probabilities.

    python studies/check_cbpe.py write cbpe.json      here
    NML_DISABLE_USAGE_LOGGING=1 python studies/check_cbpe.py compare cbpe.json    elsewhere

The second in an environment of its own (`pip install nannyml statsmodels`), which needs no sfboost.
Probabilities are drawn for two and for four classes, some of them equal. Both sides take them as they are:
NannyML would calibrate them on reference rows first, which is switched off.
"""

import argparse
import json
from pathlib import Path

import numpy as np

SIZES = (50, 1000, 20_000)


def drawn():
    """Probabilities of the classes, by name."""
    made = {}
    for n_rows in SIZES:
        rng = np.random.default_rng(n_rows)
        made[f"two classes, {n_rows} rows"] = rng.dirichlet([0.6, 1.2], n_rows)
        made[f"two classes, ties, {n_rows} rows"] = rng.dirichlet([2.0, 2.0], n_rows).round(1)
        made[f"four classes, {n_rows} rows"] = rng.dirichlet([0.5, 0.8, 1.0, 1.3], n_rows)
    return made


def write(path):
    """Ours, with the probabilities."""
    from sfboost.diagnostics import confidence_based

    cases = {}
    for name, proba in drawn().items():
        said = confidence_based(proba)
        cases[name] = {"proba": proba.tolist(), "accuracy": said["accuracy"], "roc_auc": said["auroc"]}
    path.write_text(json.dumps(cases))


def compare(path):
    """Theirs less ours."""
    import nannyml

    print(f"NannyML {nannyml.__version__}\n{'':<32}{'accuracy':>12}{'AUROC':>12}{'apart':>12}{'apart':>12}")
    for name, case in json.loads(path.read_text()).items():
        theirs = estimated(np.asarray(case["proba"]))
        apart = [theirs[score] - case[score] for score in ("accuracy", "roc_auc")]
        print(
            f"{name:<32}{case['accuracy']:>12.6f}{case['roc_auc']:>12.6f}{apart[0]:>12.1e}{apart[1]:>12.1e}"
        )


def estimated(proba):
    """What NannyML's CBPE estimates of one chunk that holds all rows."""
    import nannyml
    import pandas as pd
    from nannyml.calibration import Calibrator

    class AsTheyAre(Calibrator):
        def fit(self, *args, **kwargs):
            return None

        def calibrate(self, y_pred_proba, *args, **kwargs):
            return y_pred_proba

    n_classes = proba.shape[1]
    rng = np.random.default_rng(0)
    names = [f"class {c}" for c in range(n_classes)]
    label = (rng.random((len(proba), 1)) > proba.cumsum(axis=1)[:, :-1]).sum(axis=1)
    decided = proba.argmax(axis=1)
    if n_classes == 2:
        rows = pd.DataFrame({"proba": proba[:, 1], "decided": decided, "label": label})
        columns, kind = "proba", "classification_binary"
    else:
        rows = pd.DataFrame({name: proba[:, c] for c, name in enumerate(names)})
        rows = rows.assign(decided=[names[c] for c in decided], label=[names[c] for c in label])
        columns, kind = {name: name for name in names}, "classification_multiclass"
    estimator = nannyml.CBPE(
        ["accuracy", "roc_auc"],
        y_pred_proba=columns,
        y_pred="decided",
        y_true="label",
        problem_type=kind,
        chunk_number=1,
        calibrator=AsTheyAre(),
    )
    found = estimator.fit(rows).estimate(rows).filter(period="analysis").to_df()
    return {score: float(found[score]["value"].iloc[0]) for score in ("accuracy", "roc_auc")}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    told = parser.parse_args()
    {"write": write, "compare": compare}[told.step](told.file)
