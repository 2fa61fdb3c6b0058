"""Networks of the same shape, each trained without a part of the rows, as one whose answer is their mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sfboost.torch.candidates import Candidate, trunk_maker
from sfboost.torch.split_network import SplitNetwork


class SideBySide(nn.Module):
    """The features of several trunks next to each other.

    Parameters
    ----------
    trunks : sequence of nn.Module
        Each maps a batch to (n, width).

    Examples
    --------
    >>> SideBySide([nn.Linear(2, 3), nn.Linear(2, 3)])(torch.zeros(5, 2)).shape
    torch.Size([5, 6])
    """

    def __init__(self, trunks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.trunks = nn.ModuleList(trunks)

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, members · width)."""
        return torch.cat([trunk(x) for trunk in self.trunks], dim=1)


def align_unstable(networks: Sequence[SplitNetwork]) -> None:
    """Give Φ_U of all members the same meaning, in place: the logits in the domain that it says most in.

    Each network begins with a direction of its own, and the mean of Φ_U that point different ways says
    nothing. Of more than two classes the logits are centred: what all of them share says nothing about the
    class, but may be about f_S, which a head with a weak penalty would then fit. Else the logits of every
    h_U^e stay what they are.

    Examples
    --------
    >>> net = SplitNetwork(nn.Linear(2, 3), n_features=3, n_classes=2, n_domains=2, n_unstable=1,
    ...                    unstable_trunk=nn.Linear(2, 3))
    >>> x = torch.randn(4, 2)
    >>> before = net.unstable_logits(net.unstable_features(x), (2, 2))
    >>> align_unstable([net])
    >>> torch.allclose(net.unstable_logits(net.unstable_features(x), (2, 2)), before, atol=1e-6)
    True
    """
    sizes = torch.stack([network.unstable_weight.detach().flatten(1).norm(dim=1) for network in networks])
    surest = int(sizes.mean(0).argmax())
    with torch.no_grad():
        for network in networks:
            projection = network.unstable_projection
            assert isinstance(projection, nn.Linear)
            weight, bias = network.unstable_weight[surest].clone(), network.unstable_bias[surest].clone()
            if len(weight) > 1:
                weight, bias = weight - weight.mean(0), bias - bias.mean()
            back = network.unstable_weight @ torch.linalg.pinv(weight)
            network.unstable_bias.sub_(back @ bias)
            network.unstable_weight.copy_(back)
            projection.weight.copy_(weight @ projection.weight)
            projection.bias.copy_(weight @ projection.bias + bias)


def stretch_of_mean(logits: np.ndarray, held: Sequence[np.ndarray]) -> float:
    """Return by how much the mean of members' logits must be stretched to be as sure as a member may be.

    The mean errs less than a member, so what calibrates a member leaves it too timid: with independent errors
    E[Y | z] is steeper in the mean by Var(z_member) / Var(z_mean). Only one member did not see a row, so
    Var(z_mean) on new rows comes from covariances between that member and each of the others.

    Parameters
    ----------
    logits : array of shape (members, n, K)
        Of all rows.
    held : sequence of int arrays
        Rows that each member did not see.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> signal, errors = rng.normal(size=(4000, 1)), rng.normal(size=(4, 4000, 1))
    >>> z = signal + errors  # a member has variance 2, their mean 1.25
    >>> round(stretch_of_mean(z, np.split(np.arange(4000), 4)), 1)
    1.6
    """
    n = len(logits)
    if n == 1:
        return 1.0
    own, shared = [], []
    for k, rows in enumerate(held):
        z = logits[:, rows] - logits[:, rows].mean(axis=1, keepdims=True)
        products = (z * z[k]).sum(axis=2).mean(axis=1)
        own.append(products[k])
        shared.append(np.delete(products, k).mean())
    member = float(np.mean(own))
    mean = member / n + (1 - 1 / n) * min(float(np.mean(shared)), member)
    return float(np.clip(member / max(mean, 1e-12), 1.0, n))


def mean_network(networks: Sequence[SplitNetwork], stretch: float = 1.0) -> SplitNetwork:
    """Return the network whose logits and Φ_U are the means of those of its members.

    Parameters
    ----------
    networks : sequence of SplitNetwork
        With two trunks each; Φ_S is the whole trunk.
    stretch : float
        Factor of the stable logits, see `stretch_of_mean`.

    Examples
    --------
    >>> members = [SplitNetwork(nn.Linear(2, 3), n_features=3, n_classes=2, n_domains=2, n_unstable=1,
    ...                         unstable_trunk=nn.Linear(2, 3)) for _ in "abc"]
    >>> whole, x = mean_network(members), torch.randn(4, 2)
    >>> means = [torch.stack([part(m) for m in members]).mean(0) for part in (
    ...     lambda m: m.stable_logits(m.stable_features(x)), lambda m: m.unstable_features(x))]
    >>> torch.allclose(whole.stable_logits(whole.stable_features(x)), means[0], atol=1e-6)
    True
    >>> torch.allclose(whole.unstable_features(x), means[1], atol=1e-6)
    True
    """
    first, n = networks[0], len(networks)
    like = first.unstable_weight
    stable_trunks = [network.trunk for network in networks]
    unstable_trunks = [network.unstable_trunk for network in networks if network.unstable_trunk is not None]
    projection = first.unstable_projection
    assert isinstance(projection, nn.Linear)
    with torch.random.fork_rng(devices=[]):  # weights are drawn, and those of the members take their place
        whole = SplitNetwork(
            SideBySide(stable_trunks),
            n_features=n * first.n_stable,
            n_classes=first.n_classes,
            n_domains=len(like),
            n_unstable=first.n_unstable,
            unstable_trunk=SideBySide(unstable_trunks),
            n_unstable_inputs=n * projection.in_features,
        ).to(like.device, like.dtype)

    def joined(part: str) -> tuple[Tensor, Tensor]:
        layers = [getattr(network, part) for network in networks]
        weight = torch.cat([layer.weight for layer in layers], dim=1) / n
        return weight, torch.stack([layer.bias for layer in layers]).mean(0)

    with torch.no_grad():
        for part in ("stable_head", "unstable_projection"):
            weight, bias = joined(part)
            getattr(whole, part).weight.copy_(weight)
            getattr(whole, part).bias.copy_(bias)
        whole.stable_head.weight.mul_(stretch)
        whole.stable_head.bias.mul_(stretch)
        whole.unstable_weight.copy_(torch.stack([m.unstable_weight for m in networks]).mean(0))
        whole.unstable_bias.copy_(torch.stack([m.unstable_bias for m in networks]).mean(0))
    return whole.eval()


def searched_trunk(
    architecture: Mapping[str, Any],
    part: str,
    shape: Sequence[int],
    n_classes: int,
    own: nn.Module | None = None,
) -> Callable[[], nn.Module]:
    """Return what makes the trunks that a search found, to be filled with weights.

    Parameters
    ----------
    architecture : mapping
        ``members``, and the settings of a `Candidate` for each part.
    part : {"stable", "unstable"}
    shape : sequence of int
        Of one row of X.
    n_classes : int
    own : nn.Module, optional
        The trunk that was passed, if one was.

    Examples
    --------
    >>> architecture = {"members": 2, "stable": Candidate(view="grey").settings()}
    >>> searched_trunk(architecture, "stable", (2, 8, 8), 2)()(torch.zeros(3, 2, 8, 8)).shape
    torch.Size([3, 200])
    """
    make = trunk_maker(Candidate(**architecture[part]), own, shape, n_classes)
    return lambda: SideBySide([make() for _ in range(architecture["members"])])
