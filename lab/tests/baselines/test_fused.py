"""The fast path of wide networks against plain layers."""

import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from torch import nn  # noqa: E402

from sfboost_lab.baselines.learned.fused import (  # noqa: E402
    FusedMLP,
    Workspace,
    fused_relu_network,
    random_drop,
)


@pytest.mark.parametrize("widths", [(5,), (16, 7), (9, 33, 4)])
def test_the_fast_path_has_the_outputs_and_gradients_of_plain_layers(widths):
    torch.manual_seed(0)
    net = FusedMLP(6, widths).double().train()
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
    net = FusedMLP(6, (10, 12), dropout=0.3).double().train()
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
    with pytest.raises(RuntimeError, match="as an MLP"):
        first.sum().backward()


def test_every_byte_of_the_dropout_mask_has_the_same_rate():
    torch.manual_seed(0)
    drop = random_drop(200_000, 8, 51).double().mean(0)
    # 5 standard deviations of a mean of 200 000 draws
    assert (drop - 51 / 256).abs().max() < 5 * (51 / 256 * 205 / 256 / 200_000) ** 0.5
