"""Count the library's modules that a call goes through, and how often it goes from one room to another.

python tools/count_crossings.py [--names]
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd

import sfboost
from sfboost.cli.app import app as command

HOUSE = Path(sfboost.__file__).parent


class Trace:
    """Modules whose functions were called in this thread, and calls from one room into another."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.crossings = 0
        self._names: dict[str, str | None] = {}

    def of(self, call: Callable[[], object]) -> "Trace":
        """Watch one call."""
        sys.setprofile(self._watch)
        try:
            call()
        finally:
            sys.setprofile(None)
        return self

    def _watch(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        here = self._name(frame.f_code.co_filename)
        if here is None:
            return
        self.modules.add(here)
        caller = self._name(frame.f_back.f_code.co_filename) if frame.f_back else None
        self.crossings += caller is not None and caller.split("/")[0] != here.split("/")[0]

    def _name(self, file: str) -> str | None:
        if file not in self._names:
            path = Path(file)
            inside = path.is_absolute() and path.is_relative_to(HOUSE)
            self._names[file] = path.relative_to(HOUSE).as_posix() if inside else None
        return self._names[file]


def table(domain: str, seed: int) -> pd.DataFrame:
    """Draw a domain: two columns that say the label everywhere, two whose meaning is its own."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 300)
    moved = -1 if domain == "new" else 1
    drawn = rng.normal(size=(4, 300)) + np.outer([1, 0.7, moved, 0.8 * moved], 2 * y - 1)
    return pd.DataFrame(drawn.T, columns=["s1", "s2", "u1", "u2"]).assign(label=y, site=domain)


def in_python() -> None:
    """Fit on three domains, adapt to a fourth, predict."""
    train = pd.concat([table(name, seed) for seed, name in enumerate("abc")])
    features = ["s1", "s2", "u1", "u2"]
    model = sfboost.StableFeatureBoosting(stable_features=["s1", "s2"])
    model.fit(train[features], train["label"], sample_domain=train["site"])
    new = table("new", 9)[features]
    model.adapt(new).predict_proba(new)


def by_command() -> None:
    """Run the command on the same tables."""
    with tempfile.TemporaryDirectory() as name, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        folder = Path(name)
        pd.concat([table(name, seed) for seed, name in enumerate("abc")]).to_csv(
            folder / "train.csv", index=False
        )
        table("new", 9).drop(columns="label").to_csv(folder / "new.csv", index=False)
        files = [str(folder / "train.csv"), str(folder / "new.csv")]
        roles = ["--target", "label", "--domain", "site", "--stable", "s1,s2"]
        output = ["--output", str(folder / "out.csv"), "--report", str(folder / "page.html")]
        try:
            command(["run", *files, *roles, *output])
        except SystemExit as end:
            if end.code not in (0, None, 3):
                raise


def main() -> None:
    """Print both counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--names", action="store_true", help="list the modules, too")
    names = parser.parse_args().names
    for what, call in {"fit, adapt, predict_proba": in_python, "sfboost run": by_command}.items():
        call()  # so that the bodies of modules and classes are not counted
        trace = Trace().of(call)
        print(f"{what}: {len(trace.modules)} modules, {trace.crossings} calls from room to room")
        if names:
            print("\n".join(f"  {module}" for module in sorted(trace.modules)))


if __name__ == "__main__":
    sys.exit(main())
