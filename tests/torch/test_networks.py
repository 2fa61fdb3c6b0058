"""Networks: shapes, files of weights."""

import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from torch import nn  # noqa: E402

from sfboost.torch.efficientnet import load_weights, read_state_dict  # noqa: E402
from sfboost.torch.networks import NETWORKS, ByteDropout, make_network  # noqa: E402


@pytest.mark.parametrize("name", [n for n in NETWORKS if n != "efficientnet-lite0"])
def test_every_named_network_maps_rows_to_features(name):
    net = make_network(name, (7,)).eval()
    assert net(torch.zeros(2, 7)).shape == (2, net.n_features)


def test_the_named_mlps_are_those_of_the_tables():
    widths = {
        name: [layer.out_features for layer in make_network(name, (2,)).layers]
        for name in ("small", "mlp", "mlp3")
    }
    assert widths == {"small": [8, 8], "mlp": [390, 390], "mlp3": [390, 390, 390]}


def test_dropout_keeps_the_mean_and_does_nothing_in_evaluation():
    torch.manual_seed(0)
    layer, x = ByteDropout(0.2), torch.ones(1000, 100)
    assert layer(x).mean().item() == pytest.approx(1.0, abs=0.01)
    assert torch.equal(layer.eval()(x), x)
    with pytest.raises(ValueError, match="Dropout"):
        ByteDropout(1.0)


def test_weights_that_do_not_fit_are_refused_with_their_names(tmp_path):
    torch.save({"other": torch.zeros(1)}, tmp_path / "w.pt")
    with pytest.raises(ValueError, match="weight"):
        load_weights(nn.Linear(3, 1), tmp_path / "w.pt")
    with pytest.raises(FileNotFoundError, match="no weights file"):
        read_state_dict(tmp_path / "none.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(ValueError, match="state dict"):
        read_state_dict(tmp_path / "list.pt")


def test_a_file_that_would_run_code_is_refused(tmp_path):
    torch.save({"weight": nn.Linear(1, 1)}, tmp_path / "code.pt")
    with pytest.raises(Exception, match="weights_only"):
        read_state_dict(tmp_path / "code.pt")


def test_efficientnet_gives_1280_pretrained_features():
    pytest.importorskip("efficientnet_lite_pytorch", reason="needs the vision extra")
    net = make_network("efficientnet-lite0", (3, 64, 64)).eval()
    fresh = type(net)(pretrained=False).eval()
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert net(x).shape == (2, 1280) == (2, net.n_features)
        assert not torch.allclose(net(x), fresh(x))


def test_an_unknown_name_and_a_wrong_shape_are_explained():
    with pytest.raises(ValueError, match="mlp3"):
        make_network("vgg", (2,))
    with pytest.raises(ValueError, match=r"channels, height, width"):
        make_network("efficientnet-lite0", (2,))
