"""Progress is for terminals, and the log is left as it was."""

import logging

from sfboost.cli.console import Voice


def test_nothing_is_told_off_a_terminal_and_the_log_is_left_as_it_was(capsys):
    log = logging.getLogger("sfboost")
    before = log.level, list(log.handlers)
    for voice in (Voice(), Voice(quiet=True)):
        with voice.waiting("Fitting"):
            log.info("one")
    assert (log.level, list(log.handlers)) == before
    assert capsys.readouterr().err == ""
