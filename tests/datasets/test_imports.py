from absent import run_without


def test_the_package_imports_no_extra():
    """scikit-learn imports pandas where it is installed, so the extras are made absent."""
    program = """
import sfboost.datasets
print(len(sfboost.datasets.colored_digits().domains) > 11)
"""
    extras = ("torch", "pandas", "PIL", "pooch", "pyarrow", "matplotlib", "typer")
    done = run_without(extras, program)
    assert done.stdout.strip() == "True"
