"""Pictures for this room's tests, and a cache of their own."""

import numpy as np
import pytest

CLASSES = ("dog", "elephant", "guitar")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """An empty cache for each test; the user's own is never touched."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("SFBOOST_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Two domains of fifteen pictures of three kinds, 20 by 16, and a file that is no picture."""
    image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'sfboost[data]'")
    root, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for k in range(30):
        place = root / "pacs" / ("photo", "sketch")[k // 15] / CLASSES[k % 3]
        place.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (20, 16, 3), dtype=np.uint8)
        image.fromarray(pixels).save(place / f"pic_{k:03}.png")
    (place / "notes.txt").write_text("none")
    return root
