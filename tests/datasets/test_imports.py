import subprocess
import sys


def test_the_package_imports_no_extra():
    """scikit-learn imports pandas where it is installed, so the extras are made absent."""
    program = """
import sys
absent = {"torch", "pandas", "PIL", "pooch", "pyarrow", "matplotlib", "typer"}
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import sfboost.datasets, sfboost.lab.datasets.synthetic
print(len(sfboost.datasets.colored_digits().domains) > 11)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
