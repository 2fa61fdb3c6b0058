"""ResNet-18 against an independent implementation."""

import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from safetensors.torch import save_file  # noqa: E402

from sfboost_lab.baselines.learned.resnet import ResNet18  # noqa: E402

F = torch.nn.functional


def _independent_resnet18(state, x):
    """ResNet-18 written once more, with functional calls on the raw tensors of a standard state dict."""

    def normalise(x, name):
        mean, var = state[f"{name}.running_mean"], state[f"{name}.running_var"]
        shape = (1, -1, 1, 1)
        x = (x - mean.view(shape)) / torch.sqrt(var.view(shape) + 1e-5)
        return x * state[f"{name}.weight"].view(shape) + state[f"{name}.bias"].view(shape)

    x = F.relu(normalise(F.conv2d(x, state["conv1.weight"], stride=2, padding=3), "bn1"))
    x = F.max_pool2d(x, 3, 2, 1)
    for stage in range(1, 5):
        for block in range(2):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            out = F.relu(
                normalise(F.conv2d(x, state[f"{name}.conv1.weight"], stride=stride, padding=1), f"{name}.bn1")
            )
            out = normalise(F.conv2d(out, state[f"{name}.conv2.weight"], padding=1), f"{name}.bn2")
            if f"{name}.downsample.0.weight" in state:
                x = F.conv2d(x, state[f"{name}.downsample.0.weight"], stride=stride)
                x = normalise(x, f"{name}.downsample.1")
            x = F.relu(out + x)
    return F.adaptive_avg_pool2d(x, 1).flatten(1)


def _random_state():
    generator = torch.Generator().manual_seed(3)
    state = ResNet18().state_dict()
    for name, value in state.items():
        if value.is_floating_point():
            noise = torch.rand(value.shape, generator=generator)
            state[name] = 0.5 + noise if "running_var" in name else (noise - 0.4) * 0.1
    return state


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_resnet18_reads_a_standard_file_and_agrees_with_an_independent_implementation(tmp_path, suffix):
    state = _random_state()
    file = tmp_path / f"weights{suffix}"
    whole = {**state, "fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}
    torch.save(whole, file) if suffix == ".pt" else save_file(whole, file)
    net = ResNet18(weights=file).eval()
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(net(x), _independent_resnet18(state, x), rtol=1e-4, atol=1e-5)


def test_resnet18_has_the_parameter_names_and_count_of_the_standard_one():
    net = ResNet18()
    names = {name.split(".")[0] for name, _ in net.named_parameters()}
    assert names == {"conv1", "bn1", "layer1", "layer2", "layer3", "layer4"}
    # 11 689 512 with the 1000-class layer, 513 000 of which are that layer
    assert sum(p.numel() for p in net.parameters()) == 11_689_512 - 513_000


def test_a_frozen_batch_norm_keeps_its_statistics_in_training():
    net = ResNet18(freeze_batch_norm=True).train()
    before = net.bn1.running_mean.clone()
    net(torch.randn(2, 3, 32, 32))
    assert torch.equal(net.bn1.running_mean, before)
