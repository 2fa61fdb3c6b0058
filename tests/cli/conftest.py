"""Tables and model files that several tests of the command share; each is made once."""

import json
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

if all(find_spec(name) for name in ("typer", "pandas", "pyarrow", "jinja2")):
    from hospitals import ROLES, reversed_hospital, training
    from typer.testing import CliRunner

    from sfboost.cli.app import app
else:  # the [app] extra is not here
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def sfboost():
    """Run the command; `code` is how it must end."""

    def run(*arguments, code=0, input=None):
        done = CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)
        assert done.exit_code == code, done.output + str(done.exception)
        assert "Traceback" not in done.output
        return done

    run.json = lambda *arguments, **options: json.loads(run(*arguments, "--json", **options).stdout)
    return run


@pytest.fixture(scope="session")
def files(tmp_path_factory, sfboost):
    """Three labelled hospitals, a fourth one that reverses the heart rate, a model and an adapted model."""
    folder = tmp_path_factory.mktemp("hospitals")
    new = reversed_hospital()
    training().to_csv(folder / "train.csv", index=False)
    training().to_parquet(folder / "train.parquet", index=False)
    new.drop(columns=["sick", "hospital"]).to_csv(folder / "new.csv", index=False)
    new.to_csv(folder / "labelled.csv", index=False)
    model, adapted, report = folder / "model.sfb", folder / "adapted.sfb", folder / "report.html"
    sfboost("fit", folder / "train.csv", *ROLES, "-o", model)
    sfboost("adapt", model, folder / "labelled.csv", "-o", adapted, "--report", report)
    return SimpleNamespace(
        folder=folder,
        train=folder / "train.csv",
        parquet=folder / "train.parquet",
        new=folder / "new.csv",
        labelled=folder / "labelled.csv",
        model=model,
        adapted=adapted,
        report=report,
    )
