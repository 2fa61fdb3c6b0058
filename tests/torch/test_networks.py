"""Networks: shapes, the fast path against plain layers, files of weights."""

import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from torch import nn  # noqa: E402

from sfboost.torch.efficientnet import load_weights, read_state_dict  # noqa: E402
from sfboost.torch.fused import Workspace, fused_relu_network, random_drop  # noqa: E402
from sfboost.torch.networks import MLP, NETWORKS, ByteDropout, SmallCNN, make_network  # noqa: E402

F = torch.nn.functional


@pytest.mark.parametrize("name", [n for n in NETWORKS if n != "efficientnet-lite0"])
def test_every_named_network_maps_rows_to_features(name):
    shape = (3, 32, 32) if name == "cnn" else (7,)
    net = make_network(name, shape).eval()
    assert net(torch.zeros(2, *shape)).shape == (2, net.n_features)


def test_the_named_mlps_are_those_of_the_tables():
    widths = {
        name: [layer.out_features for layer in make_network(name, (2,)).layers]
        for name in ("small", "mlp", "mlp3")
    }
    assert widths == {"small": [8, 8], "mlp": [390, 390], "mlp3": [390, 390, 390]}


@pytest.mark.parametrize("widths", [(5,), (16, 7), (9, 33, 4)])
def test_the_fast_path_has_the_outputs_and_gradients_of_plain_layers(widths):
    torch.manual_seed(0)
    net = MLP(6, widths).double().train()
    x = torch.randn(50, 6, dtype=torch.float64)
    direction = torch.randn(50, widths[-1], dtype=torch.float64)
    results = []
    for fused in (False, True, True):  # the second fused pass runs on used buffers
        net.fused = fused
        net.zero_grad()
        out = net(x)
        (out * direction).sum().backward()
        results.append([out.detach().clone(), *(p.grad.clone() for p in net.parameters())])
    for plain, first, second in zip(*results, strict=True):
        torch.testing.assert_close(first, plain, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(second, plain, rtol=1e-10, atol=1e-12)


def test_the_fast_path_with_dropout_is_plain_dropout_with_the_same_mask():
    torch.manual_seed(0)
    net = MLP(6, (10, 12), dropout=0.3).double().train()
    x = torch.randn(40, 6, dtype=torch.float64)
    rates = 256 / (256 - 77)

    torch.manual_seed(1)
    masks = [random_drop(40, 16, 77)[:, :width] for width in (10, 12)]  # the fast path pads rows to 16
    h = x
    for layer, mask in zip(net.layers, masks, strict=True):
        h = layer(h).relu().masked_fill(mask, 0.0) * rates
    reference = torch.autograd.grad(h.square().sum(), list(net.parameters()))

    torch.manual_seed(1)
    net.fused = True
    out = net(x)
    torch.testing.assert_close(out, h, rtol=1e-10, atol=1e-12)
    got = torch.autograd.grad(out.square().sum(), list(net.parameters()))
    for a, b in zip(got, reference, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


def test_the_fast_path_refuses_a_backward_pass_whose_buffers_are_gone():
    layer, buffers = nn.Linear(2, 3), Workspace()
    first = fused_relu_network(torch.ones(4, 2), [layer.weight], [layer.bias], 0.0, buffers)
    fused_relu_network(torch.ones(4, 2), [layer.weight], [layer.bias], 0.0, buffers)
    with pytest.raises(RuntimeError, match="fused=False"):
        first.sum().backward()


def test_every_byte_of_the_dropout_mask_has_the_same_rate():
    torch.manual_seed(0)
    drop = random_drop(200_000, 8, 51).double().mean(0)
    # 5 standard deviations of a mean of 200 000 draws
    assert (drop - 51 / 256).abs().max() < 5 * (51 / 256 * 205 / 256 / 200_000) ** 0.5


def test_dropout_keeps_the_mean_and_does_nothing_in_evaluation():
    torch.manual_seed(0)
    layer, x = ByteDropout(0.2), torch.ones(1000, 100)
    assert layer(x).mean().item() == pytest.approx(1.0, abs=0.01)
    assert torch.equal(layer.eval()(x), x)
    with pytest.raises(ValueError, match="Dropout"):
        ByteDropout(1.0)


def test_weights_that_do_not_fit_are_refused_with_their_names(tmp_path):
    torch.save({"other": torch.zeros(1)}, tmp_path / "w.pt")
    with pytest.raises(ValueError, match=r"convolutions\.0\.weight"):
        load_weights(SmallCNN(3), tmp_path / "w.pt")
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
        make_network("cnn", (2,))
