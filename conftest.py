"""Of both packages: hypothesis profiles, no skips in CI, and no doctests of rooms whose extra is missing."""

import os
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

#: Room → what its modules import at the top.
NEEDS = {
    "src/sfboost/torch": ("torch", "safetensors"),
    "src/sfboost/cli": ("typer", "rich", "pandas", "pyarrow", "jinja2"),
    "src/sfboost/report": ("jinja2",),
    "src/sfboost/tables": ("pyarrow", "pandas"),
    "lab/src/sfboost_lab/baselines/learned": ("torch", "safetensors"),
}

_absent = {room: [name for name in names if find_spec(name) is None] for room, names in NEEDS.items()}
collect_ignore_glob = [f"{room}/*" for room, missing in _absent.items() if missing]
collect_ignore_glob += ["tests/helpers/*", "lab/tests/helpers/*"]  # tests import them; some need an extra


def pytest_report_header(config):
    """Say what is left out and what would bring it back."""
    return [
        f"sfboost: examples of {room} are left out, because {', '.join(missing)} is not installed"
        for room, missing in _absent.items()
        if missing
    ]


settings.register_profile(
    "default",
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "thorough", parent=settings.get_profile("default"), max_examples=500, derandomize=False
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def _refuse_skips(report, what):
    """Where every extra must be installed (CI), a skip is a failure.

    One check of scikit-learn's own kit runs only with its experimental array API switched on: that is not
    an extra of ours. Nor is a browser, which no package of ours can bring, nor a library beside
    ours: MLflow wants older packages than `all` does.
    """
    strict = os.environ.get("SFBOOST_REQUIRE_EXTRAS") and "SCIPY_ARRAY_API" not in str(report.longrepr)
    strict = strict and not {"browser", "interop"} & set(getattr(report, "keywords", {}))
    if report.skipped and not hasattr(report, "wasxfail") and strict:
        report.outcome = "failed"
        report.longrepr = f"{what} was skipped although everything should be here: {report.longrepr}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Of a test."""
    _refuse_skips((yield).get_result(), item.nodeid)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """Of a file."""
    _refuse_skips((yield).get_result(), collector.nodeid)
