"""Networks: shapes, dropout, pretrained weights."""

import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from sfboost.torch.networks import NETWORKS, ByteDropout, make_network  # noqa: E402


@pytest.mark.parametrize("name", [n for n in NETWORKS if n != "efficientnet-lite0"])
def test_every_named_network_maps_rows_to_features(name):
    net = make_network(name, (7,)).eval()
    assert net(torch.zeros(2, 7)).shape == (2, net.n_features)


def test_dropout_keeps_the_mean_and_does_nothing_in_evaluation():
    torch.manual_seed(0)
    layer, x = ByteDropout(0.2), torch.ones(1000, 100)
    assert layer(x).mean().item() == pytest.approx(1.0, abs=0.01)
    assert torch.equal(layer.eval()(x), x)
    with pytest.raises(ValueError, match="Dropout"):
        ByteDropout(1.0)


def test_efficientnet_gives_1280_features_of_the_weights_that_came_with_it():
    pytest.importorskip("efficientnet_lite_pytorch", reason="needs the vision extra")
    from sfboost.torch.efficientnet import weights_file

    net = make_network("efficientnet-lite0", (3, 64, 64)).eval()
    with torch.no_grad():
        assert net(torch.zeros(2, 3, 64, 64)).shape == (2, 1280) == (2, net.n_features)
    given, mine = torch.load(weights_file(), weights_only=True), net.net.state_dict()
    assert all(torch.equal(given[name], value) for name, value in mine.items())


def test_an_unknown_name_and_a_wrong_shape_are_explained():
    with pytest.raises(ValueError, match="mlp3"):
        make_network("vgg", (2,))
    with pytest.raises(ValueError, match=r"channels, height, width"):
        make_network("efficientnet-lite0", (2,))
