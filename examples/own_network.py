"""A network of one's own learns what is stable: in the two domains a colour does not say the same."""

import numpy as np
import torch

from sfboost.torch import Plan, SFBClassifier

rng = np.random.default_rng(0)
torch.manual_seed(0)  # of the weights that the network begins with


def pictures(n_rows, agreement):
    """A shape in eight pixels, right in 75 %; a colour that agrees as often as the domain says."""
    y = rng.integers(0, 2, n_rows)
    shape = np.where(rng.random(n_rows) < 0.75, y, 1 - y)
    colour = np.where(rng.random(n_rows) < agreement, y, 1 - y)
    X = (2.0 * shape[:, None] - 1) + rng.normal(size=(n_rows, 8))
    return np.column_stack([X, 2.0 * colour - 1]).astype(np.float32), y


parts = [pictures(1000, agreement) for agreement in (0.9, 0.8)]
X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
X_new, y_new = pictures(3000, 0.1)
network = torch.nn.Sequential(torch.nn.Linear(9, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16))
model = SFBClassifier(network, plan=Plan(budget=1))  # without a plan it searches longer
model.fit(X, y, sample_domain=np.repeat([0, 1], 1000))
adapted = model.adapt(X_new)
print(f"as trained {model.score(X_new, y_new):.1f}, {adapted.decision_} {adapted.score(X_new, y_new):.1f}")
