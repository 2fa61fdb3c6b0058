"""A sweep can be killed anywhere and started again on any engine: nothing lost, nothing doubled."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from engine_runs import make_groups

from sfboost_lab.experiments import Store, sweep
from sfboost_lab.experiments.engines import InProcessEngine, JoblibEngine, execute
from sfboost_lab.experiments.store import FolderInUseError

HELPERS = Path(__file__).parent.parent / "helpers"


def values(contents):
    return {name: record.value("test") for name, record in contents.records.items()}


def lines(folder):
    return [line for path in Store(folder).segments for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Six groups of five, done in this process without a hitch."""
    return values(sweep(make_groups(6, 5), tmp_path_factory.mktemp("expected")))


def test_every_engine_gives_the_same_records(tmp_path, expected):
    assert len(expected) == 30
    assert values(sweep(make_groups(6, 5), tmp_path, JoblibEngine(jobs=2))) == expected


def test_another_engine_finishes_what_one_began(tmp_path, expected):
    sweep(make_groups(6, 5)[:2], tmp_path, JoblibEngine(jobs=2))
    assert values(sweep(make_groups(6, 5), tmp_path, InProcessEngine())) == expected
    assert len(lines(tmp_path)) == 30  # none was done twice


def test_a_finished_sweep_does_nothing(tmp_path):
    told = []
    for _ in range(2):
        sweep(make_groups(2, 3), tmp_path, on_start=told.append)
    assert [(p.total, p.before) for p in told] == [(6, 0), (6, 6)]
    assert len(lines(tmp_path)) == 6


def test_a_run_that_is_planned_twice_is_done_once(tmp_path):
    group = make_groups(1, 4)[0]
    twice = replace(group, runs=(*group.runs, *group.runs))
    assert len(sweep([twice, group], tmp_path).records) == 4
    assert len(lines(tmp_path)) == 4


def test_shared_training_is_done_once_per_group_and_never_again(tmp_path):
    log = tmp_path / "log"
    groups = make_groups(2, 5, log=str(log))
    sweep(groups, tmp_path / "out")
    for path in Store(tmp_path / "out").segments:  # the records are lost, the cache is not
        path.unlink()
    sweep(groups, tmp_path / "out")
    assert log.read_text().splitlines() == ["trained 0", "trained 5"]


def test_a_failing_run_is_recorded_with_its_traceback_and_the_others_go_on(tmp_path):
    records = sweep(make_groups(2, 4, "fails_for_odd_seeds"), tmp_path, JoblibEngine(jobs=2)).records
    failed = [record for record in records.values() if not record.ok]
    assert sorted(record.run.seed for record in failed) == [1, 3, 5, 7]
    assert all("ArithmeticError: seed" in record.error and "Traceback" in record.error for record in failed)
    assert sum(record.ok for record in records.values()) == 4


def test_failed_runs_are_done_again_only_on_request(tmp_path):
    mended = tmp_path / "mended"
    groups = make_groups(1, 2, "fails_until_mended", mended=str(mended))
    assert not any(r.ok for r in sweep(groups, tmp_path / "out").records.values())
    mended.touch()
    assert not any(r.ok for r in sweep(groups, tmp_path / "out").records.values())
    assert all(r.ok for r in sweep(groups, tmp_path / "out", retry_failed=True).records.values())


def test_of_two_failures_the_last_one_is_told(tmp_path):
    log = tmp_path / "log"
    for _ in range(2):
        records = sweep(
            make_groups(1, 1, "fails_and_counts", log=str(log)), tmp_path, retry_failed=True
        ).records
    assert "ArithmeticError: failure 2" in next(iter(records.values())).error


class ForkEngine:
    """Every task in a forked child: a worker's death costs no new pool."""

    def run(self, tasks):
        for task in tasks:
            child = os.fork()
            if not child:
                execute(task)
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            yield task, None if os.WIFSIGNALED(status) else len(task.todo)


def test_a_worker_that_dies_once_loses_nothing(tmp_path):
    groups = make_groups(4, 3, "dies_once", flag=str(tmp_path / "flag"), at=4)
    records = sweep(groups, tmp_path / "out", ForkEngine()).records
    assert (tmp_path / "flag").exists()
    assert len(records) == 12
    assert all(record.ok for record in records.values())
    assert len(lines(tmp_path / "out")) == 12


def test_a_run_that_always_kills_its_worker_fails_alone(tmp_path):
    records = sweep(make_groups(3, 3, "always_dies", at=[4]), tmp_path, ForkEngine()).records
    assert [r.run.seed for r in records.values() if not r.ok] == [4]
    assert "died" in next(r.error for r in records.values() if not r.ok)
    assert len(records) == 9


def test_a_run_that_fails_costs_its_neighbours_nothing_when_another_one_kills(tmp_path):
    records = sweep(make_groups(1, 6, "fails_at_first_and_dies_at", at=[2]), tmp_path, ForkEngine()).records
    failed = {record.run.seed: record.error for record in records.values() if not record.ok}
    assert sorted(failed) == [0, 2]
    assert "ArithmeticError" in failed[0]
    assert "died" in failed[2]
    assert len(lines(tmp_path)) == 6


def test_a_group_whose_shared_work_kills_is_given_up_after_two_runs(tmp_path):
    groups = make_groups(2, 5, "always_dies", at=[1, 2, 3, 4], log=str(tmp_path / "log"))
    records = sweep(groups, tmp_path / "out", ForkEngine()).records
    assert sorted(r.run.seed for r in records.values() if not r.ok) == [1, 2, 3, 4]
    assert (tmp_path / "log").read_text().count("begun") == 1 + 3 + 2  # seed 0, seed 1, seed 2 and no more


def test_a_worker_killed_from_outside_loses_nothing(tmp_path):
    groups = make_groups(6, 4, "slow")
    with _killing_the_first_worker(tmp_path) as killed:
        records = sweep(groups, tmp_path, JoblibEngine(jobs=2)).records
    assert killed
    assert len(records) == 24
    assert all(record.ok for record in records.values())


def test_a_sweep_killed_at_random_points_ends_on_another_engine_as_if_it_never_was(tmp_path, expected):
    # `slow` is `ordinary` after a pause, and the function is no part of a run's identity.
    delays = random.Random(0)
    for _ in range(8):
        child = os.fork()
        if not child:
            sweep(make_groups(6, 5, "slow"), tmp_path)
            os._exit(0)
        time.sleep(delays.uniform(0.01, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert 0 < len(Store(tmp_path).read().records) < 30
    assert values(sweep(make_groups(6, 5), tmp_path, JoblibEngine(jobs=2))) == expected
    assert len(lines(tmp_path)) - Store(tmp_path).read().torn == 30


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sweep_outlives_the_shell_that_started_it(tmp_path, jobs):
    script = (
        "from engine_runs import make_groups; from sfboost_lab.experiments import sweep;"
        "from sfboost_lab.experiments.engines import JoblibEngine;"
        f"sweep(make_groups(2, 8, 'slow'), {str(tmp_path)!r}, JoblibEngine(jobs={jobs}))"
    )
    shell = '"$0" -c "$1" & while ! ls "$2"/records/* >/dev/null 2>&1; do sleep 0.01; done'
    path = os.pathsep.join([str(HELPERS), *sys.path])
    started = ["sh", "-c", shell, sys.executable, script, str(tmp_path)]
    subprocess.run(started, check=True, env={**os.environ, "PYTHONPATH": path}, timeout=60)
    assert len(Store(tmp_path).read().records) < 16  # the shell is gone, the sweep goes on
    deadline = time.monotonic() + 60
    while len(Store(tmp_path).read().records) < 16 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(Store(tmp_path).read().records) == 16


@pytest.mark.long
def test_workers_stop_when_their_sweep_is_killed(tmp_path):
    script = (
        "from engine_runs import make_groups; from sfboost_lab.experiments import sweep;"
        "from sfboost_lab.experiments.engines import JoblibEngine;"
        f"sweep(make_groups(2, 500, 'slow'), {str(tmp_path)!r}, JoblibEngine(jobs=2))"
    )
    path = os.pathsep.join([str(HELPERS), *sys.path])
    process = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path})
    deadline = time.monotonic() + 60
    while len(Store(tmp_path).segments) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    time.sleep(0.5)  # the run at hand is finished
    done = len(lines(tmp_path))
    time.sleep(0.5)
    assert len(lines(tmp_path)) == done
    assert 0 < done < 1000


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
def test_a_cache_file_that_was_cut_is_made_again(tmp_path, kept, expected):
    groups = make_groups(6, 5)
    sweep(groups, tmp_path)
    for path in Store(tmp_path).segments:
        path.unlink()
    cut = list((tmp_path / "cache").glob("*.npz"))
    assert len(cut) == 6
    for path in cut:
        path.write_bytes(path.read_bytes()[:kept])
    assert values(sweep(groups, tmp_path)) == expected


def test_two_sweeps_do_not_share_a_folder(tmp_path):
    with Store(tmp_path).lock(), pytest.raises(FolderInUseError, match="Another sweep writes"):
        sweep(make_groups(1, 1), tmp_path)
    sweep(make_groups(1, 1), tmp_path)


def test_control_c_leaves_what_was_done(tmp_path):
    # A shell that puts the tests into the background lets them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            sweep(make_groups(20, 5, "slow"), tmp_path)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    done = len(Store(tmp_path).read().records)
    assert 0 < done < 100
    assert len(sweep(make_groups(20, 5), tmp_path).records) == 100
    assert len(lines(tmp_path)) == 100


class _killing_the_first_worker:  # noqa: N801 (reads as a sentence)
    """Sends SIGKILL to the process whose segment appears first; the segment's name holds its number."""

    def __init__(self, folder):
        self.folder, self.killed = folder, []

    def __enter__(self):
        threading.Thread(target=self._kill, daemon=True).start()
        return self.killed

    def _kill(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for path in Store(self.folder).segments:
                pid = int(path.stem.rsplit("-", 2)[1])
                os.kill(pid, signal.SIGKILL)
                self.killed.append(pid)
                return
            time.sleep(0.01)

    def __exit__(self, *exc):
        pass
