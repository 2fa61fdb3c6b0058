"""Learning stable and complementary features with PyTorch (the ``torch`` extra).

From bottom to top: `rows` (what a user passes, and batches of it) · `objective` (Eq. 5.1 and its penalties) ·
`networks`, `split_network` (Φ and its heads) · `plan` (what is trained, in which stages) · `trainer`,
`progress` · `learning` (one network through its stages) · `candidates`, `search` (settings that find
themselves) · `verification`, `embedding`, `predictor`, `saved` · `classifier`.
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
