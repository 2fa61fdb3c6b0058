"""Blocks that cannot be read, runs that are stopped, workers that are killed."""

import errno
import os
import signal
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import pytest

from sfboost.streaming import Block, Here, RayData, adapt_stream, find_blocks

HELPERS = Path(__file__).parents[1] / "helpers"


def spoil(hospital, folder):
    """The four files of the hospital, and a fifth that is cut short."""
    for path in hospital.folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    data = (folder / "1.parquet").read_bytes()
    (folder / "1b.parquet").write_bytes(data[: len(data) // 2])


def test_a_block_that_cannot_be_read_is_named(hospital, tmp_path):
    spoil(hospital, tmp_path)
    with pytest.raises(ValueError, match=r"1b\.parquet cannot be read.*--skip-unreadable"):
        adapt_stream(hospital.model, tmp_path)


def test_it_is_skipped_if_that_is_asked_for_and_the_others_count(hospital, tmp_path):
    spoil(hospital, tmp_path)
    streamed = adapt_stream(hospital.model, tmp_path, skip_unreadable=True)
    assert streamed.n_rows == 3000
    assert [Path(why.split(" cannot")[0]).name for why in streamed.skipped] == ["1b.parquet"]
    np.testing.assert_allclose(streamed.adapted.predict_proba(hospital.X), hospital.proba, atol=1e-6)


class Stopped(BaseException):
    """As Ctrl-C."""


@dataclass(frozen=True)
class StoppingEngine(Here):
    """Stops the run after some blocks, and counts what was worked on."""

    log: list
    after: int

    def run(self, blocks, work):
        for block, result in super().run(blocks, work):
            if len(self.log) == self.after:
                raise Stopped
            self.log.append(block.path)
            yield block, result


def test_a_run_that_was_stopped_goes_on_from_finished_blocks(hospital, tmp_path):
    options = {"resume": tmp_path / "parts", "label": "west"}
    whole, first, second = [], [], []
    never = 10**6
    there = adapt_stream(hospital.model, hospital.folder, engine=StoppingEngine(whole, never))
    with pytest.raises(Stopped):
        adapt_stream(hospital.model, hospital.folder, engine=StoppingEngine(first, 7), **options)
    here = adapt_stream(hospital.model, hospital.folder, engine=StoppingEngine(second, never), **options)
    assert len(first) == 7
    assert len(first) + len(second) == len(whole)
    np.testing.assert_array_equal(
        here.adapted.predict_proba(hospital.X), there.adapted.predict_proba(hospital.X)
    )


def test_a_file_that_changed_meanwhile_is_read_again(hospital, tmp_path):
    for path in hospital.folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    options = {"resume": tmp_path / ".parts", "label": "west"}
    adapt_stream(hospital.model, tmp_path, **options)
    hospital.new.iloc[:100].to_parquet(tmp_path / "0.parquet", index=False)
    again = []
    engine = StoppingEngine(again, 10**6)
    assert adapt_stream(hospital.model, tmp_path, engine=engine, **options).n_rows == 2350
    assert again[0].endswith("0.parquet")


def test_a_full_disk_leaves_no_result_that_is_cut_short(hospital, tmp_path):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            adapt_stream(hospital.model, hospital.folder, resume=tmp_path / "parts", label="west")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert not list((tmp_path / "parts").iterdir())


@pytest.fixture(scope="module")
def two_workers():
    ray = pytest.importorskip("ray", reason="the [ray] extra brings the engine")
    with pytest.MonkeyPatch.context() as patch:
        # Ray starts its workers from this environment: they must find these helpers.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(HELPERS), *sys.path]))
        ray.init(
            address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error"
        )
        yield
        ray.shutdown()


@pytest.mark.long
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fatal", [1, 2, 3])
def test_a_worker_that_is_killed_in_any_pass_changes_nothing(hospital, tmp_path, two_workers, fatal):
    from fatal_blocks import FatalBlock

    blocks = find_blocks(hospital.folder, columns=hospital.X.columns)
    here = adapt_stream(hospital.model, blocks)
    values = {field.name: getattr(blocks[2], field.name) for field in fields(Block)}
    blocks[2] = FatalBlock(**values, counter=str(tmp_path / "readings"), fatal=fatal)
    there = adapt_stream(hospital.model, blocks, engine=RayData())
    readings = len((tmp_path / "readings").read_bytes())
    assert readings == there.n_passes + 1
    np.testing.assert_array_equal(
        there.adapted.predict_proba(hospital.X), here.adapted.predict_proba(hospital.X)
    )


@pytest.mark.long
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_what_is_wrong_where_a_worker_is_is_told_as_if_it_were_here(hospital, two_workers):
    from fatal_blocks import refuse, write_to_a_full_disk

    blocks = find_blocks(hospital.folder)
    for engine in (Here(), RayData()):
        with pytest.raises(OSError, match="No space left") as told:
            list(engine.run(blocks, write_to_a_full_disk))
        assert told.value.errno == errno.ENOSPC
        with pytest.raises(ValueError, match=r"^\S+0\.parquet has no column 'age'\.$"):
            list(engine.run(blocks, refuse))


@dataclass(frozen=True)
class KillingEngine(RayData):
    """Kills every worker that did something in a pass when that pass is over."""

    killed: list = field(default_factory=list)

    def run(self, blocks, work):
        import ray

        yield from super().run(blocks, work)
        before = set(self.killed)

        @ray.remote
        def who():
            return os.getpid()

        for worker in set(ray.get([who.remote() for _ in range(20)])) - before:
            os.kill(worker, signal.SIGKILL)
            self.killed.append(worker)


@pytest.mark.long
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_workers_that_are_killed_between_passes_change_nothing(hospital, two_workers):
    here = adapt_stream(hospital.model, hospital.folder)
    engine = KillingEngine()
    there = adapt_stream(hospital.model, hospital.folder, engine=engine)
    assert len(engine.killed) >= there.n_passes
    np.testing.assert_array_equal(
        there.adapted.predict_proba(hospital.X), here.adapted.predict_proba(hospital.X)
    )
