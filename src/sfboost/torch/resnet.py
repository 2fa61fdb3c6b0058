"""ResNet-18 (He et al., 2016) that reads a standard state-dict file.

The names of its parameters are the usual ones (``layer1.0.conv1.weight`` ...), so a file saved from the
common vision libraries loads as it is; the 1000-class layer ``fc`` of such a file is not used.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import torch
from torch import Tensor, nn


class _ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions and the shortcut around them."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride=stride, bias=False), nn.BatchNorm2d(n_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn1(self.conv1(x)).relu()
        out = self.bn2(self.conv2(out))
        return (out + self.downsample(x)).relu()


class ResNet18(nn.Module):
    """ResNet-18 up to its 512 pooled features.

    Parameters
    ----------
    n_channels : int
        Channels of the image (3 when weights from a file are wanted).
    weights : path, optional
        A state-dict file, ``.safetensors`` or a torch file. It is read with ``weights_only=True``.
    dropout : float
        Share of the 512 features dropped in training.
    freeze_batch_norm : bool
        Keep batch-norm layers in evaluation mode while training, as is usual for fine-tuning.

    Examples
    --------
    >>> import torch
    >>> ResNet18().eval()(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 512])
    """

    def __init__(
        self,
        n_channels: int = 3,
        *,
        weights: str | Path | None = None,
        dropout: float = 0.0,
        freeze_batch_norm: bool = False,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        widths = (64, 64, 128, 256, 512)
        for stage, (n_in, n_out) in enumerate(itertools.pairwise(widths), start=1):
            first = _ResidualBlock(n_in, n_out, stride=1 if stage == 1 else 2)
            self.add_module(f"layer{stage}", nn.Sequential(first, _ResidualBlock(n_out, n_out, stride=1)))
        self.dropout = nn.Dropout(dropout)
        self.n_features = widths[-1]
        self.freeze_batch_norm = freeze_batch_norm
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if weights is not None:
            load_weights(self, weights, ignore=("fc.",))

    def forward(self, x: Tensor) -> Tensor:
        """Return the pooled features of a batch of images."""
        x = self.maxpool(self.bn1(self.conv1(x)).relu())
        for stage in range(1, 5):
            x = self.get_submodule(f"layer{stage}")(x)
        return self.dropout(x.mean(dim=(2, 3)))

    def train(self, mode: bool = True) -> ResNet18:
        """Switch to training, with batch norm left in evaluation where it is frozen."""
        super().train(mode)
        if self.freeze_batch_norm:
            for module in self.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
        return self


def read_state_dict(path: str | Path) -> dict[str, Tensor]:
    """Read a state-dict file without running any code in it.

    Parameters
    ----------
    path : path
        ``.safetensors``, or what `torch.save` wrote of a state dict.

    Returns
    -------
    dict of str to Tensor

    Examples
    --------
    >>> import tempfile, pathlib, torch
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "w.pt"
    >>> torch.save({"bias": torch.zeros(2)}, file)
    >>> read_state_dict(file)["bias"].shape
    torch.Size([2])
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no weights file {path}. Pass the path of a state-dict file.")
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return dict(load_file(path))
    state = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise ValueError(
            f"{path} does not hold a state dict (names to tensors). Save it with "
            "torch.save(net.state_dict(), path)."
        )
    return state


def load_weights(network: nn.Module, path: str | Path, *, ignore: tuple[str, ...] = ()) -> None:
    """Load a state-dict file into a network, and say what does not fit.

    Parameters
    ----------
    network : nn.Module
        Changed in place.
    path : path
        The file.
    ignore : tuple of str
        Names in the file that begin like this are left out.

    Examples
    --------
    >>> import tempfile, pathlib, torch
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "w.pt"
    >>> torch.save(torch.nn.Linear(2, 1).state_dict(), file)
    >>> load_weights(torch.nn.Linear(2, 1), file)
    """
    state = {name: value for name, value in read_state_dict(path).items() if not name.startswith(ignore)}
    wanted = network.state_dict()
    # Files from before batch norm counted its batches lack the counter; it plays no part in the outputs.
    missing = [name for name in wanted if name not in state and not name.endswith("num_batches_tracked")]
    extra = [name for name in state if name not in wanted]
    wrong = [name for name in state if name in wanted and state[name].shape != wanted[name].shape]
    if missing or extra or wrong:
        raise ValueError(
            f"{path} does not fit {type(network).__name__}: missing {missing[:3]}, not known "
            f"{extra[:3]}, of another "
            f"shape {wrong[:3]} ({len(missing)}, {len(extra)} and {len(wrong)} in all)."
        )
    network.load_state_dict(state, strict=False)
