import subprocess
import sys


def test_the_package_imports_no_extra():
    program = (
        "import sys, sfboost.datasets, sfboost.datasets.synthetic; "
        "extras = ('torch', 'pandas', 'PIL', 'pooch', 'pyarrow', 'matplotlib', 'typer'); "
        "print([extra for extra in extras if extra in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
