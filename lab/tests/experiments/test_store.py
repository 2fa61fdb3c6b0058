"""Records are written once, with a checksum, and read back as they were."""

import json
import math
import shutil

import pytest
from engine_runs import make_runs
from hypothesis import given
from hypothesis import strategies as st

from sfboost_lab.experiments import Measured, Record, Run, Store, read_records, write_records
from sfboost_lab.experiments.store import Tail


def record(run, accuracy=0.5, error=None):
    measured = (
        None if error else Measured({"test": {"accuracy": accuracy}}, {"temperature": 1.5}, trained_on=("a",))
    )
    return Record(run, measured, 0.25, {"numpy": "2"}, error)


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.dictionaries(
        st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=5), st.none()), max_size=3
    ),
)
def test_a_record_survives_its_line(accuracy, error, hyper):
    run = Run("ac", "erm", seed=3, protocol="test", hyper=hyper)
    before = Record(run, Measured({"p": {"accuracy": accuracy}}), 1.0, {}, error or None)
    line = before.to_line()
    after = Record.from_line(line)
    assert json.loads(line)["record"]["id"] == run.id == after.run.id
    assert after.error == before.error
    assert math.isclose(after.value("p"), accuracy, rel_tol=1e-5, abs_tol=1e-300)
    assert after.to_line() == line


@given(st.data())
def test_any_changed_character_is_noticed(data):
    line = record(make_runs(1)[0]).to_line()
    place = data.draw(st.integers(0, len(line) - 2))
    other = data.draw(st.characters(min_codepoint=32, max_codepoint=126).filter(lambda c: c != line[place]))
    assert Record.from_line(line[:place] + other + line[place + 1 :]) is None


def test_a_torn_last_line_is_ignored_wherever_it_is_torn(tmp_path):
    runs = make_runs(3)
    Store(tmp_path).append([record(run) for run in runs])
    path = Store(tmp_path).segments[0]
    whole = path.read_bytes()
    last = len(whole.splitlines(keepends=True)[-1])
    for torn in (1, last // 2, last - 1):
        path.write_bytes(whole[:-torn])
        contents = Store(tmp_path).read()
        assert set(contents.records) == {runs[0].id, runs[1].id}
        assert contents.torn == 1
        assert contents.damaged == ()


def test_a_line_changed_later_is_told_apart_from_a_torn_one(tmp_path):
    runs = make_runs(3)
    Store(tmp_path).append([record(run) for run in runs])
    path = Store(tmp_path).segments[0]
    path.write_text(path.read_text().replace('"seed":1', '"seed":7'))
    contents = Store(tmp_path).read()
    assert set(contents.records) == {runs[0].id, runs[2].id}
    assert contents.damaged == (f"{path.name}:2",)


def test_success_stands_before_failure_in_whatever_order_they_came(tmp_path):
    run = make_runs(1)[0]
    for name, order in (("a", (None, "broken")), ("b", ("broken", None))):
        for error in order:
            store = Store(tmp_path / name)
            store.append([record(run, error=error)])
        assert Store(tmp_path / name).read().records[run.id].ok


def test_every_process_and_every_store_writes_a_segment_of_its_own(tmp_path):
    first, second = Store(tmp_path), Store(tmp_path)
    runs = make_runs(4)
    for store, run in zip((first, second, first, second), runs, strict=True):
        store.append([record(run)])
    assert len(first.segments) == 2
    assert set(first.read().records) == {run.id for run in runs}


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_the_same_records_give_the_same_file(tmp_path, name):
    records = [record(run, seed / 10) for seed, run in enumerate(make_runs(5))]
    one = write_records(records, tmp_path / "one" / name)
    two = write_records(reversed(records), tmp_path / "two" / name)
    assert one.read_bytes() == two.read_bytes()
    assert read_records([one]).records == {r.run.id: r for r in records}
    assert [p.name for p in one.parent.iterdir()] == [name]


def test_the_tail_counts_what_came_since(tmp_path):
    store = Store(tmp_path)
    store.append([record(run) for run in make_runs(2)])
    tail = Tail(store)
    assert tail.new_lines() == 0
    Store(tmp_path).append([record(run) for run in make_runs(3)])
    assert (tail.new_lines(), tail.new_lines()) == (3, 0)


def test_a_segment_that_was_deleted_is_begun_anew(tmp_path):
    store = Store(tmp_path)
    for run in make_runs(2):
        store.append([record(run)])
        assert [found.run for found in Store(tmp_path).read().records.values()] == [run]
        shutil.rmtree(tmp_path / "records")
