"""Signals at random moments of the real commands: no file is half written, none is left lying about.

python tools/kills.py [--kills 200] [--commands fit,adapt,predict,run,reproduce] [--seed 0]

Each command is run once unbroken, which tells its files and the time that it takes of the processor. Then it
is run over and over in a folder with older files, and gets SIGINT, SIGTERM or SIGKILL after a random share
of that time. Every file must then be the older one or the complete one. After SIGKILL a part may lie there,
as no process can clean up: the same command, run again, must remove it, and leave what the unbroken run left.
Runs of `sfboost-lab reproduce` are killed in one folder, where each goes on from the last.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROLES = ("--target", "sick", "--domain", "hospital", "--stable", "age,sex,chol", "--id", "patient")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
OLD = b"an older file"
# Late moments are when files are written: every other signal comes in this last share of the time.
LATE = 0.25
# What differs from run to run: identities and times of finished runs, and the lock that they share.
UNLIKE = ("records", "lock", "index.html")


class Command(NamedTuple):
    """What is run, and which files it writes."""

    words: tuple[str, ...]
    writes: tuple[str, ...]


COMMANDS = {
    "fit": Command(("fit", "train.csv", *ROLES, "--no-evaluate", "-o", "out.sfb"), ("out.sfb",)),
    "adapt": Command(
        ("adapt", "model.sfb", "new.csv", "-o", "out.sfb", "--report", "out.html"), ("out.sfb", "out.html")
    ),
    "predict": Command(("predict", "adapted.sfb", "new.csv", "-o", "out.csv"), ("out.csv",)),
    "run": Command(
        ("run", "train.csv", "new.csv", *ROLES, "--no-evaluate", "-o", "out.csv", "--report", "out.html"),
        ("out.csv", "out.html"),
    ),
    "reproduce": Command(
        ("reproduce", "sample-size", "--quick", "--seeds", "1", "--engine", "in-process"), ()
    ),
}


def start(command: Command, folder: Path) -> subprocess.Popen[str]:
    """The real command, in a process of its own."""
    module = "sfboost_lab" if command.words[0] == "reproduce" else "sfboost"
    return subprocess.Popen(
        [sys.executable, "-m", module, *command.words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def run_to_the_end(command: Command, folder: Path) -> float:
    """Run it, and return how many seconds of the processor it took."""
    before = os.times()
    process = start(command, folder)
    said = process.communicate()[1]
    if process.returncode:
        raise SystemExit(f"{' '.join(command.words)} fails by itself:\n{said}")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def kill_after(command: Command, folder: Path, seconds: float, number: signal.Signals) -> tuple[int, str]:
    """Send a signal after so many seconds of the processor; return the exit code and what was said."""
    process = start(command, folder)
    while process.poll() is None and _processor_seconds(process.pid) < seconds:
        time.sleep(0.005)
    process.send_signal(number)
    said = process.communicate()[1]
    return process.returncode, said


def _processor_seconds(pid: int) -> float:
    """User and system time so far; that of a process that has just ended is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below, but those that differ from run to run."""
    found = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {str(name): _essence(path) for name, path in found.items() if not set(name.parts) & set(UNLIKE)}


def _essence(path: Path) -> bytes:
    """The bytes of a file; of a whole model file, numbers of its tree without their last digits.

    Where a sum stands in memory decides how it is rounded.
    """
    from sfboost import SavedModelError
    from sfboost.persistence.archive import unpack

    content = path.read_bytes()
    if path.suffix != ".sfb":
        return content
    try:
        parts = unpack(content)
    except SavedModelError:
        return content
    tree = json.loads(parts.pop("model.json"), parse_float=lambda digits: f"{float(digits):.8e}")
    return repr((tree, parts)).encode()


def faults_of(
    command: Command, complete: dict[str, bytes], found: dict[str, bytes], killed: bool
) -> Iterator[str]:
    """What is wrong with the files after a signal."""
    for name, content in found.items():
        if name in complete:
            older = name in command.writes and content == OLD
            if content != complete[name] and not older:
                yield f"{name} is half written ({len(content)} bytes)"
        elif not (killed and Path(name).name.startswith(".incoming-")):
            yield f"{name} lies about"
    if not complete.keys() - set(command.writes) <= found.keys():
        yield f"files are gone: {sorted(complete.keys() - found.keys())}"


def study(name: str, kills: int, made: Path, rng: random.Random) -> list[str]:
    """Kill a command so many times; return what went wrong."""
    command, faults, codes = COMMANDS[name], [], Counter[int]()
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place, "whole")
        shutil.copytree(made, whole)
        takes = run_to_the_end(command, whole)
        complete, folder = files_of(whole), Path(place, "killed")
        for i in range(kills):
            if name != "reproduce" or not i:
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(made, folder)
            for written in command.writes:
                (folder / written).write_bytes(OLD)
            share = rng.random() if i % 2 or name == "reproduce" else 1.0 - LATE * rng.random()
            number = rng.choice(SIGNALS)
            code, said = kill_after(command, folder, share * takes, number)
            codes[code] += 1
            found, killed = files_of(folder), number == signal.SIGKILL
            told = list(faults_of(command, complete, found, killed)) if name != "reproduce" else []
            told += [f"a traceback is shown:\n{said}"] if "Traceback" in said else []
            litter = found.keys() - complete.keys()
            if litter or i == kills - 1:
                run_to_the_end(command, folder)
                if files_of(folder) != complete:
                    told.append("the same command, run again, leaves other files than an unbroken one")
            told = [f"{name}, {number.name} after {share:.3f} of its time: {each}" for each in told]
            print(*told, sep="\n", end="\n" * bool(told), flush=True)
            faults += told
    ended = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
    print(f"{name}: {kills} signals (exit codes {ended}), {len(faults)} faults", flush=True)
    return faults


def prepare(folder: Path) -> None:
    """Tables, a model and an adapted model."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests/helpers"))
    from hospitals import reversed_hospital, training

    training(60).to_csv(folder / "train.csv", index=False)
    reversed_hospital(60).to_csv(folder / "new.csv", index=False)
    run_to_the_end(COMMANDS["fit"], folder)
    (folder / "out.sfb").rename(folder / "model.sfb")
    run_to_the_end(Command(("adapt", "model.sfb", "new.csv", "-o", "adapted.sfb"), ()), folder)


def main(arguments: list[str] | None = None) -> int:
    """Kill each command, and print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="signals for each command")
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--seed", type=int, default=0)
    options, faults = parser.parse_args(arguments), []
    # What a job in the background ignores, those that it starts would ignore too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as made:
        prepare(Path(made))
        for name in options.commands.split(","):
            faults += study(name, options.kills, Path(made), random.Random(f"{name} {options.seed}"))
    print(f"{len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
