"""Learning stable and complementary features with PyTorch (the ``torch`` extra).

Layering, lowest first: `outputs`, `fused`, `plan`, `precision`, `checkpoint` · `penalties`, `independence`,
`networks` · `split_network`, `objective`, `batches` · `building`, `trainer` · `stages`, `course` ·
`learning` · `views`, `candidates`, `folds`, `side_by_side`, `progress` · `members`, `first_guess`,
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "sfboost.torch needs PyTorch and safetensors. Install them with: pip install 'sfboost[torch]'."
    ) from error

from sfboost.torch.classifier import SFBClassifier
from sfboost.torch.plan import Plan
from sfboost.torch.saved import load
from sfboost.torch.trainer import TrainingDivergedError

__all__ = ["Plan", "SFBClassifier", "TrainingDivergedError", "load"]
