"""Files by a hostile writer, with the right seal and sums: refused with a sentence, whatever is inside."""

import hashlib
import json
import os
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfboost
from sfboost import SavedModelError
from sfboost.persistence.archive import pack, unpack
from sfboost.persistence.registry import KINDS
from sfboost.persistence.saving import SCHEMA, from_bytes, to_bytes


def refused(data, match):
    with pytest.raises(SavedModelError, match=match):
        from_bytes(data)


def test_the_forger_without_a_lie_is_believed(forger, adaptation):
    assert str(from_bytes(forger.write())) == str(adaptation)


def test_a_newer_format_is_refused_with_what_to_do(forger):
    forger.manifest["schema"] = SCHEMA + 1
    forger.manifest["versions"]["sfboost"] = "9.0"
    refused(forger.write(), r"written by sfboost 9\.0.*install a newer sfboost")


@pytest.mark.parametrize("schema", [0, -1, True, None, "1", 1.0, [1]])
def test_a_format_that_is_no_number_is_refused(forger, schema):
    forger.manifest["schema"] = schema
    refused(forger.write(), "format version")


@pytest.mark.parametrize("kind", ["Temperature", "dict", "os.system", None, ["Adaptation"]])
def test_a_kind_that_is_no_model_is_refused(forger, kind):
    forger.manifest["kind"] = kind
    refused(forger.write(), "does not know|malformed")


def test_a_manifest_that_lies_about_the_kind_is_refused(forger):
    forger.manifest["kind"] = "AdaptedClassifier"
    refused(forger.write(), "something else than")


def test_a_changed_part_is_refused_though_the_seal_is_right(adaptation):
    parts = unpack(to_bytes(adaptation))
    parts["parts/0.npy"] = parts["parts/0.npy"][:-1] + b"\x01"
    refused(pack(parts), r"parts \['parts/0.npy'\] are not those")


@pytest.mark.parametrize("change", ["less", "more"])
def test_parts_must_be_those_of_the_manifest(adaptation, change):
    parts = unpack(to_bytes(adaptation))
    if change == "less":
        del parts["parts/0.npy"]
    else:
        parts["parts/999.npy"] = b""
    refused(pack(parts), "are not those that its manifest lists")


def test_a_foreign_zip_is_refused():
    refused(pack({"model.json": b"{}"}), "no manifest of sfboost")
    refused(pack({"manifest.json": b'{"format": "other"}'}), "no manifest of sfboost")
    refused(pack({"manifest.json": b"not json"}), "malformed")


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


def test_a_pickle_is_refused_and_not_run(tmp_path, capsys):
    (tmp_path / "model.sfb").write_bytes(b"cprint\n(S'executed'\ntR.")
    with pytest.raises(SavedModelError, match=r"model\.sfb is not loaded: it does not begin like"):
        sfboost.load(tmp_path / "model.sfb")
    assert capsys.readouterr().out == ""


def test_an_unknown_type_is_refused(forger):
    forger.tree["state"]["guard"] = {"object": "Popen", "state": {"args": "ls"}}
    refused(forger.write(), "'Popen', which is no type that this version of sfboost knows")


def test_attributes_that_a_type_does_not_have_are_refused(forger):
    forger.tree["state"]["predict_proba"] = 3
    refused(forger.write(), "malformed .*predict_proba")


def test_a_part_that_is_used_twice_or_never_is_refused(forger_of, adaptation):
    forger = forger_of(adaptation)
    forger.tree["state"]["prior"] = forger.tree["state"]["divisor"]  # memory would outgrow the file
    refused(forger.write(), "does not have, or twice")
    forger.tree["state"]["prior"] = None
    refused(forger.write(), "nothing in it uses its parts")


def test_deep_nesting_is_refused(forger):
    forger.tree["state"]["guard"] = None
    text = json.dumps(forger.tree).replace('"guard": null', '"guard": ' + "[" * 100_000 + "]" * 100_000)
    manifest = forger.manifest | {
        "parts": {
            name: {"sha256": hashlib.sha256(part).hexdigest(), "size": len(part)}
            for name, part in {"model.json": text.encode(), **forger.parts}.items()
        }
    }
    parts = {"manifest.json": json.dumps(manifest).encode(), "model.json": text.encode(), **forger.parts}
    refused(pack(parts), "malformed .*Recursion")


def test_a_cache_of_pickles_is_refused(forger_of, model):
    forger = forger_of(model)
    forger.tree["state"]["stable_"]["state"]["memory"] = "/tmp/cache"
    refused(forger.write(), "a cache of pickles")


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["object", "state", "array", "tuple", "dict", "slice", "objects", "shape", "scalar"]
            ),
            inner | st.sampled_from([*KINDS, "Guard", "BSpline", "parts/0.npy", "parts/1.npy"]),
            max_size=2,
        )
    ),
    max_leaves=4,
)


def places(tree, here=()):
    """Paths to everything in a tree."""
    yield here
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from places(value, (*here, key))


@settings(max_examples=80)
@given(data=st.data(), junk=JUNK)
def test_junk_anywhere_in_the_tree_loads_or_is_refused_and_nothing_else(forger_of, model, data, junk):
    forger = forger_of(model)
    path = data.draw(st.sampled_from(sorted(places(forger.tree), key=str)[1:]))
    inside = forger.tree
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = junk
    with suppress(SavedModelError):
        assert type(from_bytes(forger.write())).__name__ == "StableFeatureBoosting"


@settings(max_examples=80)
@given(place=st.integers(0), bit=st.integers(0, 7))
def test_a_changed_bit_under_a_new_seal_loads_or_is_refused_and_nothing_else(adaptation, place, bit):
    body = bytearray(to_bytes(adaptation)[:-64])
    body[place % len(body)] ^= 1 << bit
    data = bytes(body) + hashlib.sha256(body).hexdigest().encode()
    with suppress(SavedModelError):
        assert str(from_bytes(data)) == str(adaptation)


def test_no_unpickler_is_ever_called(tmp_path, monkeypatch, model, adaptation, new):
    import joblib

    adapted = model.adapt(new)
    for i, each in enumerate((model, adapted, adaptation)):
        each.save(tmp_path / f"{i}.sfb")

    def never(*args, **kwargs):
        raise AssertionError("an unpickler was called")

    for module, name in ((pickle, "load"), (pickle, "loads"), (pickle, "Unpickler"), (joblib, "load")):
        monkeypatch.setattr(module, name, never)
    for i, each in enumerate((model, adapted, adaptation)):
        assert type(sfboost.load(tmp_path / f"{i}.sfb")) is type(each)
    with pytest.raises(AssertionError, match="unpickler"):  # the guard itself works
        np.load(_pickled(tmp_path), allow_pickle=True)


def _pickled(folder):
    np.save(folder / "pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
    return folder / "pickled.npy"


def test_keys_that_share_a_hash_are_refused_and_the_keys_that_models_have_are_not(forger):
    def keys(given):
        return {"dict": [[key, 0] for key in given]}

    forger.tree["state"]["guard"] = keys(range(1000))
    assert from_bytes(forger.write()).guard == dict.fromkeys(range(1000), 0)
    forger.tree["state"]["guard"] = keys(i * (2**61 - 1) for i in range(5000))
    refused(forger.write(), "more than 1000 keys that are no text")
    forger.tree["state"]["guard"] = keys({"tuple": [i, 0.5]} for i in range(1001))
    refused(forger.write(), "more than 1000 keys that are no text")


def peak_of(data, match):
    """Bytes that loading took at most, before it refused."""
    tracemalloc.start()
    try:
        refused(data, match)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("atom", ["[]", "{}", '{"":0}'])
def test_what_is_small_in_a_file_and_large_in_memory_is_refused_before_it_is_built(forger, atom):
    forger.tree["state"]["guard"] = "HERE"
    parts = forger.parts
    bomb = json.dumps(forger.tree).replace('"HERE"', "[" + ",".join([atom] * 2_000_000) + "]").encode()
    manifest = forger.manifest | {"parts": {}}
    for name, part in {"model.json": bomb, **parts}.items():
        manifest["parts"][name] = {"sha256": hashlib.sha256(part).hexdigest(), "size": len(part)}
    data = pack({"manifest.json": json.dumps(manifest).encode(), "model.json": bomb, **parts})
    assert peak_of(data, "lists, objects and keys") < 5 * len(data)


def test_a_manifest_can_be_a_bomb_no_more_than_a_tree():
    data = pack({"manifest.json": b"[" + b"[]," * 2_000_000 + b"0]"})
    assert peak_of(data, r"manifest\.json has more than 1000000 lists") < 5 * len(data)


def test_a_list_of_fields_is_no_number_type(forger):
    forger.tree["state"]["guard"] = {"dtype": "f8," * 20}
    refused(forger.write(), "numbers of type")
