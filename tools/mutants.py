"""Faults written by hand, each put into a copy of the sources: the quick tests of its room must see it.

python tools/mutants.py [part of a file's name or of its text ...]

Prints killed or survived for each, and fails where fewer than nine in ten are killed, or where the text of a
fault is not found any more: then the fault is to be written anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/sfboost"
LEAST_KILLED = 0.9
LONGEST = 300.0  # seconds; a fault that makes a loop endless is killed


class Mutant(NamedTuple):
    """A fault: in `file`, `old` becomes `new`, and one of `tests` should fail."""

    file: str
    old: str
    new: str
    tests: str


def _of(file: str, tests: str, *faults: tuple[str, str]) -> list[Mutant]:
    return [Mutant(file, old, new, tests) for old, new in faults]


MUTANTS = [
    *_of(
        "marginal/combination.py",
        "tests/marginal",
        ("log_unstable - floored_log(prior), 0.0)", "log_unstable + floored_log(prior), 0.0)"),
        ("np.where(prior > 0.0, log_unstable", "np.where(prior >= 0.0, log_unstable"),
        ("floored_log(stable) - floored_log(prior), 0.0)", "floored_log(stable), 0.0)"),
    ),
    *_of(
        "marginal/pseudolabels.py",
        "tests/marginal",
        ("weighted.T @ proba)", "weighted.T @ weighted)"),
        (
            "self.cross / np.where(empty, 1.0, self.total)",
            "(self.cross / np.where(empty, 1.0, self.total)).T",
        ),
        ("confusion[:, empty] = np.eye(self.n_classes)[:, empty]", "pass"),
        ("(trace - 1.0) / (present - 1)", "(trace - 1.0) / present"),
        ("return self.weight * self.informativeness", "return self.informativeness"),
        ("vectors[:, j] / scale", "vectors[:, j] * scale"),
        ("pseudo.T @ weighted).confusion", "weighted.T @ pseudo).confusion"),
        ("(pseudo[:, 1] - confusion[1, 0]) / slope", "(pseudo[:, 1] - confusion[0, 1]) / slope"),
    ),
    *_of(
        "marginal/shares.py",
        "tests/marginal",
        ("return shares * ((ratio / mixed) @ weight)", "return (ratio / mixed) @ weight"),
    ),
    *_of(
        "marginal/simplex.py",
        "tests/marginal",
        ("solution[i] = point / point.sum()", "solution[i] = point"),
        ("open_again = slack < -tolerance", "open_again = slack > tolerance"),
        ("if np.linalg.cond(matrix) > _WORST_CONDITION:", "if np.linalg.cond(matrix) > 1e30:"),
    ),
    *_of(
        "calibration/temperature.py",
        "tests/calibration",
        ("without - _LEAST_GAIN / len(y)", "without + _LEAST_GAIN / len(y)"),
        ("(weight[rows].sum() * len(groups))", "(weight.sum() * len(groups))"),
        ("(1.0 - noise.sum()) * np.exp(log_proba) + noise", "np.exp(log_proba) + noise"),
        (
            "None if isinstance(shift, float) else shift / temperature",
            "None if isinstance(shift, float) else shift",
        ),
    ),
    *_of(
        "calibration/reliability.py",
        "tests/calibration",
        ("np.ceil(confidence * N_BINS).astype(np.intp) - 1", "np.floor(confidence * N_BINS).astype(np.intp)"),
        ("right - weight * confidence", "right - confidence"),
    ),
    *_of(
        "heads/objectives.py",
        "tests/heads",
        ("return float(weight @ loss), gradient", "return float(loss.sum()), gradient"),
        ("below -= above\n", "above -= below\n"),
        ("_bend(below, self.n_columns) - _bend(above", "_bend(below, self.n_columns) + _bend(above"),
    ),
    *_of(
        "heads/linear.py",
        "tests/heads",
        ("return 0.5 * self.l2 * float(np.sum(coef * coef))", "return self.l2 * float(np.sum(coef * coef))"),
        ("np.append(np.full(width - 1, self.l2), 0.0)", "np.full(width, self.l2)"),
        ("fit.intercept.mean() if columns > 1", "fit.intercept.min() if columns > 1"),
    ),
    *_of(
        "shift/prediction.py",
        "tests/shift",
        ("/ (others + 1)\n", "/ np.maximum(others, 1)\n"),
        ("/ np.maximum(others, 1) - within", "/ (others + 1) - within"),
        ("np.sqrt(self.variance + new[1] ** 2)", "np.sqrt(self.variance)"),
        ("np.clip(p_values, 1e-15, 0.5)", "np.clip(p_values, 1e-15, 1.0 - 1e-15)"),
        ('t if self.sides == "below" else np.sign(self.value) * t', "t"),
    ),
    *_of(
        "shift/testing.py",
        "tests/shift",
        ("float(by_column[worst]) * len(columns)", "float(by_column[worst])"),
        ("max(p_values) ** (1.0 / misfit)", "max(p_values) ** misfit"),
        ("readings[int(np.argmax(p_values))]", "readings[0]"),
    ),
    *_of(
        "shift/moments.py",
        "tests/shift",
        ("np.sqrt(weight**2 @ (H - mean) ** 2)", "np.sqrt(weight @ (H - mean) ** 2)"),
        ("parts *= H - F @ means", "parts *= H"),
        ("0.5 * np.log(variance), 0.5 * error / variance", "np.log(variance), error / variance"),
    ),
    *_of(
        "shift/coordinates.py",
        "tests/shift",
        ("+ 6.0 * first**2 * second - 3.0 * first**4", "+ 6.0 * first**2 * second - 4.0 * first**4"),
        ("turn[-1, :-1] = -shift / spread", "turn[-1, :-1] = shift / spread"),
    ),
    *_of(
        "shift/class_shares.py",
        "tests/shift src/sfboost/shift/class_shares.py",
        ("moved @ (source_prior / shares)", "moved @ (shares / source_prior)"),
    ),
    *_of(
        "choice/realigning.py",
        "tests/choice/test_realigning.py",
        ("own = self.gram[turned, turned] - (then", "own = self.gram[turned, turned] + (then"),
        ("others @ self.then + self.factor", "others @ self.now + self.factor"),
        ("np.asarray(left) * np.clip(scale", "np.abs(left) * np.clip(scale"),
    ),
    *_of(
        "choice/shares.py",
        "tests/choice/test_shares.py",
        ("np.exp(-self.drift * towards)", "np.exp(self.drift * towards)"),
        ("step = step - step.mean()\n", "step = step - step.max()\n"),
        ("_drift(np.exp(part.log_pooled + moved[-1])", "_drift(np.exp(part.log_pooled)"),
        ("PRIOR_DOMAINS * (guess / 2.0) ** 2", "PRIOR_DOMAINS * guess**2"),
    ),
    *_of(
        "choice/mixture.py",
        "tests/choice/test_mixture.py src/sfboost/choice/mixture.py",
        ("PSEUDO_DOMAINS / n_domains * np.exp", "np.exp"),
        ("weights[0] = 1.0 / temperature.temperature", "weights[0] = temperature.temperature"),
        ("share = sample_weight / np.bincount(domain, sample_weight)[domain]", "share = sample_weight"),
    ),
    *_of(
        "choice/recalibrating.py",
        "tests/choice/test_recalibrating.py",
        ("- 0.5 * precision @ theta**2 - 0.5 * volume", "- 0.5 * precision @ theta**2 + 0.5 * volume"),
        ("float(np.exp(-log_slope))", "float(np.exp(log_slope))"),
        ("1.0 / len(labelled) + 1.0 / len(others)", "1.0 / len(labelled)"),
    ),
]


def judge(mutant: Mutant, folder: Path) -> str:
    """Say killed, survived or not found; the copy in `folder` is mended again."""
    file = folder / "sfboost" / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        return "not found"
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not long", "-p", "no:cacheprovider"]
    others = [folder, ROOT / "lab/src"]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, others)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    doctests = [str(folder / test.removeprefix("src/")) for test in mutant.tests.split() if "src/" in test]
    tests = [test for test in mutant.tests.split() if "src/" not in test]
    try:
        done = subprocess.run(
            [*command, *tests, *doctests, "-c", "pyproject.toml"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "killed"
    finally:
        file.write_text(text, encoding="utf-8")
    if done.returncode not in (0, 1):
        raise SystemExit(f"The tests of {mutant.file} do not run:\n{done.stdout}")
    return "killed" if done.returncode else "survived"


def main(wanted: list[str]) -> int:
    """Judge every fault, or those whose file or old text has one of the words."""
    chosen = [one for one in MUTANTS if not wanted or any(word in one.file + one.old for word in wanted)]
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SOURCE, Path(folder) / "sfboost", ignore=shutil.ignore_patterns("__pycache__"))
        for mutant in chosen:
            start = time.monotonic()
            verdicts.append(judge(mutant, Path(folder)))
            took = f"{time.monotonic() - start:.0f} s"
            print(
                f"{verdicts[-1]:9}  {mutant.file}: {mutant.old.strip()} → {mutant.new.strip()} ({took})",
                flush=True,
            )
    killed, lost = verdicts.count("killed"), verdicts.count("not found")
    print(f"{killed} of {len(chosen)} faults killed; {lost} not found")
    return int(killed < LEAST_KILLED * len(chosen) or lost > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
