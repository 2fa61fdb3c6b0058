"""Long training is not silent: a bar where somebody looks."""

import os
import pty
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

import numpy as np  # noqa: E402

from sfboost.torch import Plan, SFBClassifier, classifier, search  # noqa: E402
from sfboost.torch.progress import TrainingProgress  # noqa: E402

WORK = """
import sys, time
from sfboost.torch import progress
progress._SHORT = 0.0
with progress.TrainingProgress(3, "search", bar=BAR) as bar:
    for name in ("first guess", "narrow, [grey]"):
        time.sleep(0.1)
        bar.step(name)
        time.sleep(0.1)
        print("printed")
"""


def _run(bar, *, terminal):
    """What a program writes to its error output, a terminal or not, and to its standard output."""
    main, side = pty.openpty() if terminal else os.pipe()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    code = WORK.replace("BAR", str(bar))
    program = subprocess.run(
        [sys.executable, "-c", code], stderr=side, stdout=subprocess.PIPE, env=environment, check=True
    )
    os.set_blocking(main, False)
    try:
        told = os.read(main, 1_000_000).decode()
    except BlockingIOError:
        told = ""
    os.close(main)
    os.close(side)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", told), program.stdout.decode()


def test_on_a_terminal_a_bar_tells_what_is_done_and_how_long_the_rest_will_take():
    told, printed = _run(True, terminal=True)
    assert re.search(r"search .*1/3 about \d s left: first guess", told)
    assert re.search(r"search .*2/3 about \d s left: narrow, \[grey\]", told)
    assert printed.count("printed") == 2  # and it stays where the program writes


@pytest.mark.long
@pytest.mark.parametrize(("bar", "terminal"), [(True, False), (False, True)])
def test_nothing_is_drawn_for_nobody_or_against_the_users_will(bar, terminal):
    told, printed = _run(bar, terminal=terminal)
    assert told == ""
    assert printed.count("printed") == 2


@pytest.mark.parametrize("budget", [0, 1])
@pytest.mark.parametrize("verbose", [True, False])
def test_a_bar_is_asked_for_unless_silence_is(verbose, budget, monkeypatch):
    asked = []

    class Asked(TrainingProgress):
        def __init__(self, *args, bar=False):
            asked.append(bar)
            super().__init__(*args, bar=bar)

    monkeypatch.setattr(classifier, "TrainingProgress", Asked)
    monkeypatch.setattr(search, "_PLAN", search._PLAN.changed(steps=2, unstable_steps=1, min_gain=-9.0))
    plan = Plan(budget=budget, verbose=verbose)
    plan = plan if budget else plan.changed(steps=4, unstable_steps=4, min_gain=-9.0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    SFBClassifier(plan=plan).fit(X, y, sample_domain=np.repeat([0, 1], 30))
    assert asked == [verbose]
