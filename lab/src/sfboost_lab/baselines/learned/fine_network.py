"""Test-time steps through a whole network: pseudo-labels on all layers.

The network is copied; the source predictor stays as it was. Needs the torch extra.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from sfboost.torch.learning import few_threads
from sfboost.torch.rows import read_x
from sfboost_lab.baselines.contract import Method, Predictor, TestAccess, head_of
from sfboost_lab.baselines.head_adapters import batches
from sfboost_lab.baselines.learned.network import NetworkPredictor, head_of_layer

_ONE_THREAD_BELOW = 2**17


@dataclass(frozen=True)
class PseudoLabelAll(Method):
    """Pseudo-labelling (Lee, 2013) of all layers: train the network on its own predictions where it is sure.

    A batch in which no row is sure makes no step. Dropout is off, as in the published code.

    Parameters
    ----------
    threshold : float
        Rows whose largest probability is above this count.
    learning_rate : float
        Of Adam. Published: the rate of training times 0.1, 1 or 10; the default is ColoredMNIST's rate. Ten
        times that already drives its predictor to one class.
    batch_size, epochs, updates : int
        Rows per batch, passes, steps per batch.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from sfboost_lab.baselines.contract import LinearHead
    >>> source = NetworkPredictor(np.array([0, 1]), nn.Linear(1, 1), LinearHead.of([[1.0]], [0.0]))
    >>> PseudoLabelAll().adapt(source, np.array([[2.0], [-2.0]])).predict_proba([[2.0]]).shape
    (1, 2)
    """

    name: ClassVar[str] = "pl-all"
    title: ClassVar[str] = "PL (all)"
    test_access: ClassVar[TestAccess] = "unlabelled"
    head_only: ClassVar[bool] = False

    threshold: float = 0.9
    learning_rate: float = 1e-4
    batch_size: int = 32
    epochs: int = 1
    updates: int = 1

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Return a trained copy of the network."""
        body, head = copied_network(predictor, self.title)
        x = read_x(X_test, next(body.parameters(), torch.zeros(())).dtype)
        parameters = [*body.parameters(), *head.parameters()]
        optimizer = torch.optim.Adam(parameters, lr=self.learning_rate)
        widest = max((p.numel() for p in body.parameters()), default=1)
        with few_threads(self.batch_size * int(np.sqrt(widest)) < _ONE_THREAD_BELOW):
            for rows in batches(len(x), self.batch_size, self.epochs, seed):
                for _ in range(self.updates):
                    logits = head(body(x[torch.from_numpy(rows)]))
                    confidence, label = logits.softmax(1).max(1)
                    sure = confidence > self.threshold
                    if sure.any():
                        optimizer.zero_grad(set_to_none=True)
                        nn.functional.cross_entropy(logits[sure], label[sure]).backward()
                        optimizer.step()
        return NetworkPredictor(predictor.classes_, body.eval(), head_of_layer(head))


def copied_network(predictor: Predictor, who: str) -> tuple[nn.Module, nn.Linear]:
    """Return a copy of the network of a predictor and its head as a layer, or say that it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from sfboost_lab.baselines.contract import LinearHead
    >>> source = NetworkPredictor(np.array([0, 1]), nn.Linear(3, 2), LinearHead.of([[1.0, 0.0]], [0.0]))
    >>> copied_network(source, "PL (all)")[1].weight.shape
    torch.Size([2, 2])
    """
    body = getattr(predictor, "body", None)
    if not isinstance(body, nn.Module):
        raise ValueError(
            f"{who} trains a network, and this predictor ({type(predictor).__name__}) is none. Use a trainer "
            "that makes one, or an adapter of the last layer."
        )
    head = head_of(predictor, who)
    body = copy.deepcopy(body).eval().requires_grad_(True)
    dtype = next(body.parameters(), torch.zeros(())).dtype
    # Without initial weights: drawing them would move the random state of the whole program.
    layer = nn.utils.skip_init(nn.Linear, head.coef.shape[1], len(head.coef), dtype=dtype)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(head.coef))
        layer.bias.copy_(torch.from_numpy(head.intercept))
    return body, layer
