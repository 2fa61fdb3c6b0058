"""Long training is not silent: a bar where somebody looks, lines where they are asked for."""

import logging
import os
import pty
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

import numpy as np  # noqa: E402

from sfboost.torch import Plan, SFBClassifier, classifier, members, search  # noqa: E402
from sfboost.torch.progress import TrainingProgress  # noqa: E402

WORK = """
import sys, time
from sfboost.torch import progress
progress._SHORT = 0.0
with progress.TrainingProgress(3, "search", bar=BAR) as bar:
    for name in ("first guess", "narrow, [grey]"):
        time.sleep(0.3)
        bar.step(name)
        time.sleep(0.3)
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


@pytest.mark.parametrize(("bar", "terminal"), [(True, False), (False, True)])
def test_nothing_is_drawn_for_nobody_or_against_the_users_will(bar, terminal):
    told, printed = _run(bar, terminal=terminal)
    assert told == ""
    assert printed.count("printed") == 2


def test_with_a_limit_of_time_the_last_steps_begin_early_enough():
    progress = TrainingProgress(100, "search", limit=60.0, last=5)
    progress.done = 10
    assert progress.left(20.0) == 60.0 - 20.0  # and not 90 steps of two seconds
    progress.done = 40
    assert progress.left(80.0) == 5 * 2.0
    progress.done = 98
    assert progress.left(98.0) == 2.0
    progress.seconds = lambda: 40.0  # 20 are left, and five steps take 200 / done
    late = {}
    for progress.done in (9, 10, 20):
        late[progress.done] = progress.late()
    assert late == {9: True, 10: False, 20: False}
    assert progress.late(more=6)  # eleven steps of two seconds
    assert not TrainingProgress(100, "search").late()


def test_steps_that_are_more_or_fewer_than_expected_are_taken_note_of():
    progress = TrainingProgress(3, "search")
    progress.expect(-2)
    for _ in range(2):
        progress.step("more")
    assert (progress.done, progress.total) == (2, 2)


@pytest.mark.parametrize("verbose", ["loud", -1, 0.5, None])
def test_what_verbose_cannot_be_is_told(verbose):
    with pytest.raises(ValueError, match="verbose must be 'auto' or a number of steps"):
        SFBClassifier(plan=Plan(verbose=verbose)).fit([[0.0], [1.0]], [0, 1], sample_domain=[0, 0])


@pytest.mark.parametrize("budget", [0, 1])
@pytest.mark.parametrize(("verbose", "bar"), [("auto", True), (0, False), (1, False), (np.int64(2), False)])
def test_a_bar_is_asked_for_unless_lines_or_silence_are(verbose, bar, budget, monkeypatch, caplog):
    asked = []

    class Asked(TrainingProgress):
        def __init__(self, *args, bar=False, **options):
            asked.append(bar)
            super().__init__(*args, **options)

    for module in (classifier, search):
        monkeypatch.setattr(module, "TrainingProgress", Asked)
    monkeypatch.setattr(members, "_PLAN", members._PLAN.changed(steps=2, unstable_steps=2, min_gain=-9.0))
    monkeypatch.setattr(members, "_LONGER", 1)
    plan = Plan(budget=budget, verbose=verbose)
    plan = plan if budget else plan.changed(steps=4, unstable_steps=4, min_gain=-9.0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    with caplog.at_level(logging.INFO, logger="sfboost.torch"):
        SFBClassifier(plan=plan).fit(X, y, sample_domain=np.repeat([0, 1], 30))
    assert asked == [bar]
    assert bool(caplog.messages) is (verbose not in ("auto", 0))
