"""The package as a whole: what importing it brings, and what its source never does."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from absent import run_without

import sfboost

SOURCE = Path(sfboost.__file__).parent


def test_the_core_works_without_any_extra():
    """As on a machine with numpy, scipy and scikit-learn alone."""
    code = """
import pathlib, tempfile, numpy as np, sfboost, sfboost.datasets
rng = np.random.default_rng(0)
y = rng.integers(0, 2, 400)
X = np.column_stack([y + rng.normal(size=400), -y + rng.normal(size=400)])
path = pathlib.Path(tempfile.mkdtemp()) / "model.sfb"
adapted = sfboost.StableFeatureBoosting([0]).fit(X, y).adapt(X)
adapted.save(path)
print((sfboost.load(path).predict_proba(X) == adapted.predict_proba(X)).all())
print(len(sfboost.datasets.colored_digits().domains) > 11)
"""
    plain = (
        "pandas",
        "pyarrow",
        "matplotlib",
        "typer",
        "rich",
        "pooch",
        "PIL",
        "ray",
        "torch",
        "safetensors",
    )
    assert run_without(plain, code).stdout.split() == ["True", "True"]


def test_importing_brings_neither_pandas_nor_torch():
    code = "import sys, sfboost; print(sorted({'pandas', 'torch', 'sfboost_lab'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_leaves_global_state_alone():
    code = (
        "import numpy, sklearn; before = (sklearn.get_config(), repr(numpy.random.get_state()),"
        " numpy.geterr()); import sfboost; sfboost.StableFeatureBoosting;"
        "print(before == (sklearn.get_config(), repr(numpy.random.get_state()), numpy.geterr()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_the_version_is_said_once():
    assert sfboost.__version__ == version("sfboost")
    root = SOURCE.parents[1]
    assert "version" not in tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "\nversion:" not in (root / "CITATION.cff").read_text(encoding="utf-8")


def test_the_default_seed_is_zero_wherever_there_is_a_default():
    told = r"\brandom_state: [^=,\n]*=\s*([^,)\n]+)"
    found = {
        (path.relative_to(SOURCE).as_posix(), default.strip())
        for path in SOURCE.rglob("*.py")
        for default in re.findall(told, path.read_text(encoding="utf-8"))
    }
    assert len(found) > 10
    # None in the settings of one adaptation: as whoever adapts says, which is 0.
    assert {(file, default) for file, default in found if default != "0"} == {
        ("adaptation/settings.py", "None")
    }


FORBIDDEN = {
    "pickle": r"\bpickle\.loads?\(|\bimport pickle\b",
    "joblib files": r"joblib\.load\(",
    "unsafe torch files": r"weights_only=False|(?<!sfboost\.)torch\.load\((?!.*weights_only=True)",
    "unsafe numpy files": r"allow_pickle=True|np\.load\((?!.*allow_pickle=False)",
    "archives unpacked whole": r"\.extractall\(",
    "shells": r"shell=True|os\.system\(",
    "evaluation": r"(?<![\w.])(?:eval|exec)\(",
    "yaml objects": r"yaml\.load\(",
    "the global random state": r"np\.random\.(seed|randn?|shuffle|permutation|choice)\(",
    "global configuration": r"sklearn\.set_config\(|torch\.set_default_dtype\(",
}


@pytest.mark.parametrize("what", sorted(FORBIDDEN))
def test_the_source_never_uses(what):
    found = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(FORBIDDEN[what], line)
    ]
    assert not found


def test_torch_is_seeded_only_where_its_state_is_put_back():
    lines = [line for path in SOURCE.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    seeded = [i for i, line in enumerate(lines) if "torch.manual_seed(" in line]
    assert seeded
    for i in seeded:
        assert "with torch.random.fork_rng(" in lines[i - 1]


@pytest.mark.long
def test_the_tests_themselves_need_no_extra():
    """What the newcomer's install lacks is skipped, not stumbled over: collection is where that fails."""
    code = """
import pytest
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]))
"""
    here = {name: value for name, value in os.environ.items() if name != "SFBOOST_REQUIRE_EXTRAS"}
    extras = ("torch", "safetensors", "ray", "skops")
    done = run_without(extras, code, cwd=SOURCE.parent.parent, env=here, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
