"""Damaged and forged files, by part: every reader loads or refuses them, in a sentence and in little time.

A case is a genuine file with one part changed by a seeded mutator, or with one of `corpus/PART/` in its
place: what once failed. `SFBOOST_FUZZ=10000 pytest tests/persistence/test_fuzz.py` tries more.
"""

import hashlib
import io
import json
import os
import random
import time
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from sklearn.naive_bayes import GaussianNB

import sfboost
from sfboost import SavedModelError, StableFeatureBoosting
from sfboost.persistence.archive import pack, unpack
from sfboost.persistence.saving import from_bytes, read_manifest, to_bytes

for extra in ("skops", "torch", "typer"):
    pytest.importorskip(extra, reason="files with one part of each kind, and all readers, need the extras")

CORPUS = Path(__file__).parent / "corpus"
CASES = int(os.environ.get("SFBOOST_FUZZ", "40"))
MOST_SECONDS = 2.0  # of the processor, for one reader and one file
JUNK = [None, True, -1, 2**63, 1e308, "", "model.json", "parts/0.npy", [], {}, [[]], {"dict": [[{}, 1]]}]
JUNK += [{"array": "parts/0.npy"}, {"object": "Temperature", "state": {}}, {"scalar": 1}, {"number": "O"}]
TOKENS = [b"PK\x01\x02", b"PK\x05\x06", b"PK\x03\x04", b"\xff" * 4, b"\0" * 4, b"{", b"]", b'"', b"(9,)"]


@pytest.fixture(scope="module")
def files(training):
    """Parts of genuine files that have one of each kind."""
    from sfboost.torch import Plan, SFBClassifier

    X, y, domain = training
    network = SFBClassifier("small", plan=Plan(steps=2, unstable_steps=2, max_restarts=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = StableFeatureBoosting([0], [1], stable=GaussianNB()), network
        return [unpack(to_bytes(model.fit(X, y, sample_domain=domain))) for model in models]


def changed_bytes(data, rng):
    """Bytes flipped, cut, repeated, or written over by what means something to a parser."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place, length, way = rng.randrange(len(data)), rng.choice((1, 4, 40)), rng.randrange(5)
        if way == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif way == 1:
            data[place:place] = data[place : place + length] * rng.choice((1, 50))
        elif way == 2:
            token = rng.choice(TOKENS)
            data[place : place + len(token)] = token
        else:
            del data[place : place + (length if way == 3 else rng.choice((100, len(data))))]
        data = data or bytearray(1)
    return bytes(data)


def changed_json(data, rng):
    """Nodes of a tree left out, or replaced by junk or by another of its nodes."""
    tree = json.loads(data)
    for _ in range(rng.choice((1, 1, 3))):
        places = list(_places(tree))
        (node, key), (other, name) = rng.choice(places), rng.choice(places)
        if rng.random() < 0.2:
            del node[key]
        else:
            node[key] = rng.choice(JUNK) if rng.random() < 0.6 else json.loads(json.dumps(other[name]))
    return json.dumps(tree).encode()


def _places(tree):
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def changed_skops(data, rng):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(("schema.json", *members))
    members[name] = (changed_json if name == "schema.json" else changed_bytes)(members[name], rng)
    return zipped(members)


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


#: By what is in their names: parts, and what changes them beside single bytes.
PARTS = {"manifest": changed_json, "model": changed_json, "skops": changed_skops}
PARTS |= dict.fromkeys(("npy", "safetensors", "zip"), changed_bytes)


def forge(files, part, change):
    """A sealed file that has a part changed; "zip" is the whole of it."""
    parts = next(parts for parts in files if part == "zip" or any(part in name for name in parts))
    if part == "zip":
        body = change(pack(parts)[:-64])
        return body + hashlib.sha256(body).hexdigest().encode()
    name = next(name for name in parts if part in name)
    return pack({**parts, name: change(parts[name])})


def info(path):
    from typer.testing import CliRunner

    from sfboost.cli.app import app

    done = CliRunner().invoke(app, ["info", str(path)])
    assert done.exit_code in (0, 2), done.output


@pytest.fixture
def judge(tmp_path):
    """Let every public reader read a file."""
    from sfboost.torch import load as load_network

    def read_by_all(data, name):
        (tmp_path / "model.sfb").write_bytes(data)
        for read in (sfboost.load, load_network, read_manifest, info):
            start = time.process_time()
            try:
                with warnings.catch_warnings(), suppress(SavedModelError):
                    warnings.simplefilter("ignore")
                    read(tmp_path / "model.sfb")
            except Exception as error:
                raise AssertionError(f"{name}: {read.__name__} raised {error!r}") from error
            assert time.process_time() - start < MOST_SECONDS, (name, read.__name__)

    return read_by_all


@pytest.mark.parametrize("part", PARTS)
def test_a_changed_file_is_loaded_or_refused_and_nothing_else(files, judge, part):
    for seed in range(CASES):
        rng = random.Random(seed)
        some, change = rng.sample(files, 2), PARTS[part] if rng.random() < 0.8 else changed_bytes
        judge(
            forge(some, part, lambda data, change=change, rng=rng: change(data, rng)), f"{part}, seed {seed}"
        )


@pytest.mark.parametrize("kept", sorted(CORPUS.glob("*/*")), ids=lambda kept: "/".join(kept.parts[-2:]))
def test_what_once_failed_is_refused(files, judge, kept):
    content, part = kept.read_bytes(), kept.parent.name
    if part == "skops" and kept.suffix == ".json":
        content = zipped({"schema.json": content})
    data = forge(files, part, lambda _: content)
    judge(data, kept.name)
    with pytest.raises(SavedModelError):
        from_bytes(data)
