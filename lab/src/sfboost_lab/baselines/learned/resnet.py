"""ResNet-18 (He et al., 2016) that reads a standard state-dict file.

The names of its parameters are the usual ones (``layer1.0.conv1.weight`` ...), so a file saved from the
common vision libraries loads as it is; the 1000-class layer ``fc`` of such a file is not used.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from torch import Tensor, nn

from sfboost.torch.efficientnet import load_weights


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
