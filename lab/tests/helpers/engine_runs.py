"""Runs for the tests of the engines: workers import these by name."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from sfboost_lab.experiments import Group, Measured, Run


def make_runs(n, protocol="test", **hyper):
    return tuple(Run("ac", "erm", seed=seed, protocol=protocol, hyper=hyper) for seed in range(n))


def make_groups(n_groups, size, function="ordinary", **hyper):
    runs = make_runs(n_groups * size, **hyper)
    return [Group(f"engine_runs:{function}", runs[i : i + size]) for i in range(0, len(runs), size)]


def ordinary(run, session):
    """A number that depends on every kind of seed, and on work shared by the group and by the folder."""

    def train():
        _count(run, "trained")
        return {"weight": np.random.default_rng(run.pretraining_seed("net", 400)).random(3)}

    shared = session.arrays({"pretraining": [r.seed for r in session.group.runs]}, train)
    noise = np.random.default_rng([run.data_seed, run.training_seed, run.own_seed]).random()
    return Measured({"test": {"accuracy": float(shared["weight"].mean() * noise)}}, precision="float64")


def slow(run, session):
    time.sleep(run.hyper.get("seconds", 0.02))
    return ordinary(run, session)


def fails_for_odd_seeds(run, session):
    if run.seed % 2:
        raise ArithmeticError(f"seed {run.seed} is odd")
    return ordinary(run, session)


def fails_until_mended(run, session):
    if not Path(run.hyper["mended"]).exists():
        raise ArithmeticError("not mended")
    return ordinary(run, session)


def fails_and_counts(run, session):
    _count(run, "failed")
    raise ArithmeticError(f"failure {len(Path(run.hyper['log']).read_text().splitlines())}")


def dies_once(run, session):
    """The worker is killed at one run, the first time it comes there."""
    flag = Path(run.hyper["flag"])
    if run.seed == run.hyper["at"] and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return ordinary(run, session)


def fails_at_first_and_dies_at(run, session):
    """The first run fails, and the worker is killed at another one, every time."""
    if run.seed == 0:
        raise ArithmeticError("the first one fails")
    return always_dies(run, session)


def always_dies(run, session):
    """The worker is killed at some runs, every time."""
    if run.seed < 5:
        _count(run, "begun")
    if run.seed in run.hyper["at"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return ordinary(run, session)


def _count(run, what):
    """Leave a line per call, in a file that the run names."""
    if "log" in run.hyper:
        with Path(run.hyper["log"]).open("a") as file:
            file.write(f"{what} {run.seed}\n")
