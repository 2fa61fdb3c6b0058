"""Shared settings: hypothesis profiles, and the promise that CI skips nothing for being missing."""

import os

import pytest
from hypothesis import HealthCheck, settings

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
    an extra of ours. Nor is a browser, which no package of ours can bring.
    """
    strict = os.environ.get("SFBOOST_REQUIRE_EXTRAS") and "SCIPY_ARRAY_API" not in str(report.longrepr)
    strict = strict and "browser" not in getattr(report, "keywords", {})
    if report.skipped and not hasattr(report, "wasxfail") and strict:
        report.outcome = "failed"
        report.longrepr = f"{what} was skipped although everything should be here: {report.longrepr}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    _refuse_skips((yield).get_result(), item.nodeid)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    _refuse_skips((yield).get_result(), collector.nodeid)
