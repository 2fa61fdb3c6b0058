"""Programs as they run where packages are not installed."""

import subprocess
import sys

_ABSENT = """
import importlib.util, sys
absent = {absent!r}
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name.partition(".")[0] in absent else found(name, *a)
"""


def run_without(packages, program, *, check=True, **options):
    """Run a program in a new process that cannot import the packages."""
    code = _ABSENT.format(absent=set(packages)) + program
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=check, **options
    )
