"""Files by a hostile writer, with the right seal: refused with a sentence, whatever is inside."""

import json
import os
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

import sfboost
from sfboost import SavedModelError
from sfboost.persistence.archive import pack
from sfboost.persistence.saving import SCHEMA, from_bytes


def refused(data, match):
    with pytest.raises(SavedModelError, match=match):
        from_bytes(data)


def test_the_forger_without_a_lie_is_believed(forger, adaptation):
    assert str(from_bytes(forger.write())) == str(adaptation)


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ({"schema": SCHEMA + 1, "versions": {"sfboost": "9.0"}}, r"written by sfboost 9\.0.*install a newer"),
        *(({"schema": schema}, "format version") for schema in (0, -1, True, None, "1", 1.0, [1])),
        *(
            ({"kind": kind}, "does not know")
            for kind in ("Temperature", "dict", "os.system", None, ["Adaptation"])
        ),
        ({"kind": "AdaptedClassifier"}, "something else than"),
        ({"versions": ["1.0"]}, "does not say which versions"),
        ({"format": "other"}, "no manifest of sfboost"),
    ],
    ids=str,
)
def test_a_manifest_that_lies_is_refused(forger, lie, said):
    forger.manifest |= lie
    refused(forger.write(), said)


def test_a_foreign_zip_is_refused():
    refused(pack({"model.json": b"{}"}), "no manifest of sfboost")
    refused(pack({"manifest.json": b"not json"}), "malformed")


@pytest.mark.parametrize(
    ("attribute", "lie", "said"),
    [
        ("cross_fit", {"object": "Popen", "state": {"args": "ls"}}, "'Popen', which is no type that"),
        ("cross_fit", {"array": "../model.json"}, "does not have, or twice"),
        ("cross_fit", {"array": "manifest.json"}, "does not have, or twice"),
        ("cross_fit", {"object": ["dict"], "state": {}}, "which is no type"),
        ("cross_fit", {"exec": "1"}, "which means nothing"),
        ("cross_fit", {"dtype": "f8," * 20}, "numbers of type"),
        ("cross_fit", {"tuple": 3}, "a int where a list should be"),
        ("predict_proba", 3, "malformed .*predict_proba"),
        ("prior", None, "nothing in it uses its parts"),
    ],
)
def test_a_tree_that_says_what_no_model_does_is_refused(forger, attribute, lie, said):
    forger.tree["state"][attribute] = lie
    refused(forger.write(), said)


def test_a_part_that_is_used_twice_is_refused(forger):
    forger.tree["state"]["prior"] = forger.tree["state"]["divisor"]  # memory would outgrow the file
    refused(forger.write(), "does not have, or twice")


def test_a_cache_of_pickles_is_refused(forger_of, model):
    forger = forger_of(model)
    forger.tree["state"]["stable_"]["state"]["memory"] = "/tmp/cache"
    refused(forger.write(), "a cache of pickles")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of Unix")
def test_what_does_not_begin_like_a_model_is_not_read_to_its_end(tmp_path):
    """A device such as /dev/zero has none."""
    pipe = tmp_path / "endless.sfb"
    os.mkfifo(pipe)
    written = []

    def write():
        with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as file:
            for _ in range(64):
                written.append(file.write(bytes(1 << 20)))

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(write)
        with pytest.raises(SavedModelError, match="does not begin like"):
            sfboost.load(pipe)
        done.result(timeout=60)
    assert sum(written) < 1 << 22


def test_a_pickle_is_refused_and_no_unpickler_is_ever_called(tmp_path, monkeypatch, capsys, model, new):
    import joblib

    (tmp_path / "pickle").write_bytes(b"cprint\n(S'executed'\ntR.")
    with pytest.raises(SavedModelError, match=r"pickle is not loaded: it does not begin like"):
        sfboost.load(tmp_path / "pickle")
    assert capsys.readouterr().out == ""
    model.adapt(new).save(tmp_path / "model.sfb")
    np.save(tmp_path / "pickled.npy", np.array([{}], dtype=object), allow_pickle=True)

    def never(*args, **kwargs):
        raise AssertionError("an unpickler was called")

    for module, name in ((pickle, "load"), (pickle, "loads"), (pickle, "Unpickler"), (joblib, "load")):
        monkeypatch.setattr(module, name, never)
    sfboost.load(tmp_path / "model.sfb")
    with pytest.raises(AssertionError, match="unpickler"):  # the guard itself works
        np.load(tmp_path / "pickled.npy", allow_pickle=True)


# -- time and memory --------------------------------------------------------------------------------------


def test_keys_that_share_a_hash_are_refused_and_the_keys_that_models_have_are_not(forger):
    def keys(given):
        forger.tree["state"]["cross_fit"] = {"dict": [[key, 0] for key in given]}
        return forger.write()

    assert from_bytes(keys(range(1000))).cross_fit == dict.fromkeys(range(1000), 0)
    for many in ((i * (2**61 - 1) for i in range(5000)), ({"tuple": [i, 0.5]} for i in range(1001))):
        refused(keys(many), "more than 1000 keys that are no text")


@pytest.mark.parametrize("atom", ["[]", "{}", '{"":0}'])
@pytest.mark.parametrize("part", ["manifest.json", "model.json"])
def test_what_is_small_in_a_file_and_large_in_memory_is_refused_before_it_is_built(forger, part, atom):
    bomb = ("[" + ",".join([atom] * 2_000_000) + "]").encode()
    data = pack({"manifest.json": json.dumps(forger.manifest).encode(), part: bomb})
    tracemalloc.start()
    refused(data, "lists, objects and keys")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * len(data)


def test_deep_nesting_is_refused(forger):
    forger.tree = b'{"object":"Adaptation","state":{"cross_fit":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    refused(forger.write(), "malformed .*Recursion")
