"""Networks with weights that depend on a seed alone, and what is asked of them before training."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from sfboost.torch.batches import Source
from sfboost.torch.split_network import SplitNetwork

_CHUNK = 8192


def seed_of(*parts: int) -> int:
    """Return a seed for a part of a run; different parts give unrelated ones.

    Examples
    --------
    >>> seed_of(0, 1) != seed_of(0, 2)
    True
    """
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))


def restart_seed(seed: int, attempt: int) -> int:
    """Return the seed of the unstable part's new weights at a restart.

    Examples
    --------
    >>> restart_seed(0, 1) != restart_seed(0, 2)
    True
    """
    return seed_of(seed, 1, attempt)


def _reset(modules: list[nn.Module]) -> None:
    for module in modules:
        # Children first: a network that has its own rule overrules that of its layers.
        for layer in reversed(list(module.modules())):
            reset = getattr(layer, "reset_parameters", None)
            if callable(reset):
                reset()


def reset_unstable(network: SplitNetwork, seed: int) -> None:
    """Draw the weights of Φ_U and of its heads anew, in place.

    Examples
    --------
    >>> import torch
    >>> net = SplitNetwork(torch.nn.Linear(2, 4), n_features=4, n_classes=2, n_domains=1, n_unstable=1,
    ...                    unstable_trunk=torch.nn.Linear(2, 4))
    >>> reset_unstable(net, 7)
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        trunk = [] if network.unstable_trunk is None else [network.unstable_trunk]
        _reset([*trunk, network.unstable_projection])
        network.reset_unstable_heads()


def reset_stable(network: SplitNetwork, seed: int) -> None:
    """Draw the weights of Φ_S and of h_S anew, in place.

    Examples
    --------
    >>> import torch
    >>> net = SplitNetwork(torch.nn.Linear(2, 4), n_features=4, n_classes=2, n_domains=1)
    >>> reset_stable(net, 7)
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        _reset([network.trunk, network.projection, network.stable_head])


def chance_risk(source: Source) -> float:
    """Return the mean over domains of the entropy of the labels: the risk of knowing the prior alone.

    Examples
    --------
    >>> from sfboost.torch.batches import ArraySource
    >>> y, d = np.array([0, 1]), np.zeros(2, int)
    >>> round(chance_risk(ArraySource(torch.zeros(2, 1), y, d, 2, 1)), 4)
    0.6931
    """
    log_prior = source.log_prior()
    return float(-(log_prior.exp() * log_prior).sum(1).mean())


def final_risk(risks: list[float]) -> float:
    """Return the mean of the last ten steps: one batch alone is noisy.

    Examples
    --------
    >>> final_risk([9.0] + [1.0] * 10)
    1.0
    """
    return float(np.mean(risks[-10:]))


def build_network(
    make_trunk: Callable[[], nn.Module],
    row: Tensor,
    *,
    split: str,
    n_classes: int,
    n_domains: int,
    n_stable: int | None,
    n_unstable: int | None,
    seed: int,
    make_unstable_trunk: Callable[[], nn.Module] | None = None,
) -> SplitNetwork:
    """Build a `SplitNetwork` with weights that depend on the seed alone.

    Parameters
    ----------
    make_trunk : callable
        Returns a new trunk.
    row : Tensor
        Two rows or more of X, to see what the trunk makes of them.
    split : {"shared", "separate", "alternating"}
        One trunk or two.
    n_classes, n_domains, n_stable, n_unstable : int
        See `SplitNetwork`.
    seed : int
        Of the initial weights.
    make_unstable_trunk : callable, optional
        Returns the trunk of Φ_U where that is another one.

    Returns
    -------
    SplitNetwork

    Examples
    --------
    >>> import torch
    >>> net = build_network(lambda: torch.nn.Linear(2, 8), torch.zeros(2, 2), split="separate", n_classes=2,
    ...                     n_domains=2, n_stable=None, n_unstable=1, seed=0)
    >>> net.n_stable, net.n_unstable
    (8, 1)
    """
    devices = [row.device.index or 0] if row.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        trunk = make_trunk()
        second = None if split == "shared" else (make_unstable_trunk or make_trunk)()
        network = SplitNetwork(
            trunk,
            n_features=trunk_width(trunk, row),
            n_classes=n_classes,
            n_domains=n_domains,
            n_stable=n_stable,
            n_unstable=n_unstable,
            unstable_trunk=second,
            n_unstable_inputs=None if second is None else trunk_width(second, row),
        )
    return network.to(row.device, row.dtype)


def trunk_width(trunk: nn.Module, row: Tensor) -> int:
    """Return how many features a trunk makes of a row, or say why it cannot be used.

    Examples
    --------
    >>> trunk_width(nn.Linear(2, 8), torch.zeros(2, 2))
    8
    """
    probe = copy.deepcopy(trunk).to(row.device, row.dtype).eval()
    try:
        with torch.no_grad():
            out = probe(row)
    except RuntimeError as error:
        raise ValueError(
            f"The network does not take rows of shape {tuple(row.shape[1:])}: {error}. "
            "Pass a network whose input fits X, or reshape X."
        ) from error
    if not isinstance(out, Tensor) or out.ndim != 2 or len(out) != len(row):
        got = f"a tensor of shape {tuple(out.shape)}" if isinstance(out, Tensor) else type(out).__name__
        raise ValueError(
            f"The network must map {len(row)} rows to a tensor of shape ({len(row)}, width), got {got}. "
            "Flatten or pool its output."
        )
    return int(out.shape[1])


def guess_classes(network: SplitNetwork, source: Source) -> np.ndarray:
    """Return Û of every row: the class that the unstable head of its own domain raises most above its share.

    Where all classes are equally frequent that is the likeliest one; a rare class is never the likeliest
    where the unstable features alone speak for it.

    Examples
    --------
    >>> import torch
    >>> from sfboost.torch.batches import ArraySource
    >>> net = SplitNetwork(torch.nn.Linear(1, 2), n_features=2, n_classes=2, n_domains=1)
    >>> guess_classes(net, ArraySource(torch.zeros(3, 1), np.zeros(3, int), np.zeros(3, int), 2, 1)).shape
    (3,)
    """
    guess = np.zeros(len(source.labels), dtype=int)
    network.eval()
    heads = zip(network.unstable_weight, network.unstable_bias, source.log_prior(), strict=True)
    with torch.no_grad():
        for rows, (weight, bias, log_prior) in zip(source.domain_rows, heads, strict=True):
            for part in np.array_split(rows, max(1, len(rows) // _CHUNK)):
                logits = network.unstable_features(source.rows(part)) @ weight.T + bias
                raised = network.all_classes(logits) - log_prior.to(logits)
                guess[part] = raised.argmax(1).cpu().numpy()
    return guess
