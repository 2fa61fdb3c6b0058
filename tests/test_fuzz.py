"""Damaged and forged files: every public reader reads or refuses them, in a sentence and in little time.

The cases are those of `tools/fuzz.py`, a few of each kind; `make harden` tries a hundred thousand.
"""

import sys
from pathlib import Path

import pytest

for extra in ("skops", "torch", "typer", "pandas"):
    pytest.importorskip(extra, reason="files with one part of each kind, and all readers, need the extras")
pytest.importorskip("resource", reason="limits of time and memory are of Unix")

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import fuzz  # noqa: E402

from sfboost import SavedModelError  # noqa: E402
from sfboost.persistence.saving import from_bytes  # noqa: E402

CORPUS = sorted((ROOT / "tests/corpus").glob("*/*"))


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    return fuzz.Readers(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.parametrize("kind", [*fuzz.PARTS, *fuzz.TABLES])
def test_a_changed_file_is_read_or_refused_and_nothing_else(readers, kind):
    for seed in range(30 if kind in fuzz.PARTS else 12):
        readers.read(kind, seed)


@pytest.mark.parametrize("kept", CORPUS, ids=lambda kept: "/".join(kept.parts[-2:]))
def test_what_once_failed_is_refused(readers, kept):
    content, kind = kept.read_bytes(), kept.parent.name
    if kind == "skops" and kept.suffix == ".json":
        content = fuzz.zipped({"schema.json": content})
    readers.read_content(kind, lambda _: content)
    if kind in fuzz.PARTS:
        with pytest.raises(SavedModelError):
            from_bytes(readers.forge(kind, lambda _: content))


def test_a_reader_that_takes_too_long_or_too_much_is_caught(monkeypatch):
    """The limits themselves."""
    monkeypatch.setattr(fuzz, "MOST_SECONDS", 0.05)
    with pytest.raises(fuzz.TooMuchError, match=r"more than 0\.05 s"), fuzz.limited():
        sum(1 for _ in range(10**10))
    monkeypatch.setattr(fuzz, "MOST_SECONDS", 60.0)
    monkeypatch.setattr(fuzz, "MOST_MEGABYTES", 100)
    with pytest.raises(fuzz.TooMuchError, match="MiB"), fuzz.limited():
        bytearray(int(fuzz._peak_megabytes() + 110) << 20)
