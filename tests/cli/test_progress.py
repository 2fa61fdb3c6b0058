"""Long work is not silent: what the library logs is told, and nothing stays behind."""

import logging

from sfboost.cli import console
from sfboost.cli.console import Voice, _NowAndThen


def test_progress_is_told_where_it_takes_long(monkeypatch, capsys):
    clock = iter([0.0, 1.0, 11.0, 12.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    with Voice().waiting("Fitting"):
        for step in ("one", "two", "three"):
            logging.getLogger("sfboost.columns.selector").info(step)
    assert capsys.readouterr().err.splitlines() == ["note: two"]


def test_nothing_is_told_when_quiet_and_the_log_is_left_as_it_was(capsys):
    log = logging.getLogger("sfboost")
    before = log.level, list(log.handlers)
    with Voice(quiet=True).waiting("Fitting"):
        log.info("one")
    with Voice().waiting("Fitting"):
        assert log.isEnabledFor(logging.INFO)
    assert (log.level, list(log.handlers)) == before
    assert capsys.readouterr().err == ""


def test_short_work_says_nothing(monkeypatch):
    told = []
    monkeypatch.setattr(console.time, "monotonic", lambda: 0.0)
    tell = _NowAndThen(told.append)
    for step in range(100):
        tell(str(step))
    assert told == []
