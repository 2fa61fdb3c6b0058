"""Φ = (Φ_S, Φ_U), the stable head h_S and one linear head h_U^e per training domain (Eq. 5.1).

From top to bottom: the network, how it is built, what it guesses, and several of the same shape as one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sfboost.torch.rows import ArraySource

#: Rows that go through a network at once where nothing is trained.
CHUNK = 8192


class Outputs(NamedTuple):
    """What one forward pass returns, rows of all domains one after the other."""

    stable_features: Tensor
    unstable_features: Tensor
    stable_logits: Tensor
    unstable_logits: Tensor


class SplitNetwork(nn.Module):
    """A trunk whose features are split, or two trunks, with the heads on top.

    Parameters
    ----------
    trunk : nn.Module
        Maps a batch to (n, n_features).
    n_features : int
        Width of the trunk's output.
    n_classes, n_domains : int
        Classes K; training domains (one h_U^e each).
    n_stable, n_unstable : int, optional
        Sizes of Φ_S and Φ_U. With one trunk, both or neither: a linear layer brings the trunk's output to
        these sizes; with neither, the trunk's output is cut in two halves. With two trunks None means the
        trunk's width.
    unstable_trunk : nn.Module, optional
        A second trunk for Φ_U (``split="separate"``).
    n_unstable_inputs : int, optional
        Width of its output; n_features by default.

    Examples
    --------
    >>> import torch
    >>> net = SplitNetwork(torch.nn.Linear(2, 8), n_features=8, n_classes=2, n_domains=2)
    >>> out = net(torch.zeros(6, 2), (3, 3))
    >>> out.stable_features.shape, out.unstable_logits.shape
    (torch.Size([6, 4]), torch.Size([6, 2]))
    """

    def __init__(
        self,
        trunk: nn.Module,
        *,
        n_features: int,
        n_classes: int,
        n_domains: int,
        n_stable: int | None = None,
        n_unstable: int | None = None,
        unstable_trunk: nn.Module | None = None,
        n_unstable_inputs: int | None = None,
    ) -> None:
        super().__init__()
        self.trunk = trunk
        self.unstable_trunk = unstable_trunk
        self.projection: nn.Module = nn.Identity()
        self.unstable_projection: nn.Module = nn.Identity()
        if unstable_trunk is not None:
            if n_stable is not None:
                self.projection = nn.Linear(n_features, n_stable)
            if n_unstable is not None:
                self.unstable_projection = nn.Linear(n_unstable_inputs or n_features, n_unstable)
        elif n_stable is not None and n_unstable is not None:
            self.projection = nn.Linear(n_features, n_stable + n_unstable)
        elif n_stable is not None or n_unstable is not None:
            raise ValueError("With one trunk give both n_stable and n_unstable, or neither (two halves).")
        elif n_features < 2:
            raise ValueError("A trunk with 1 output cannot be split; give n_stable and n_unstable.")
        else:
            n_stable, n_unstable = n_features - n_features // 2, n_features // 2
        self.n_stable = n_stable or n_features
        self.n_unstable = n_unstable or n_unstable_inputs or n_features
        self.n_classes = n_classes
        # Two classes need one number, the log-odds; the other logit is zero.
        n_outputs = 1 if n_classes == 2 else n_classes
        self.stable_head = nn.Linear(self.n_stable, n_outputs)
        self.unstable_weight = nn.Parameter(torch.empty(n_domains, n_outputs, self.n_unstable))
        self.unstable_bias = nn.Parameter(torch.empty(n_domains, n_outputs))
        self._reset_unstable_heads()

    def reset(self, part: str, seed: int) -> None:
        """Draw the weights of the "stable" or the "unstable" part anew, of its heads too.

        Examples
        --------
        >>> net = SplitNetwork(nn.Linear(2, 4), n_features=4, n_classes=2, n_domains=1)
        >>> net.reset("stable", 7)
        """
        parts = {
            "stable": [self.trunk, self.projection, self.stable_head],
            "unstable": [self.unstable_trunk or nn.Identity(), self.unstable_projection],
        }
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for module in parts[part]:
                # Children first: a network that has its own rule overrules that of its layers.
                for layer in reversed(list(module.modules())):
                    if callable(reset := getattr(layer, "reset_parameters", None)):
                        reset()
            if part == "unstable":
                self._reset_unstable_heads()

    def _reset_unstable_heads(self) -> None:
        """Draw h_U^e: one start for all domains, never near zero: a single feature begins as log-odds."""
        start = nn.init.orthogonal_(torch.empty(self.unstable_weight.shape[1:]))
        with torch.no_grad():
            self.unstable_weight.copy_(start.expand_as(self.unstable_weight))
            self.unstable_bias.zero_()

    def features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (Φ_S(x), Φ_U(x))."""
        if self.unstable_trunk is None:
            both = self.projection(self.trunk(x))
            return both[:, : self.n_stable], both[:, self.n_stable :]
        return self.stable_features(x), self.unstable_features(x)

    def stable_features(self, x: Tensor) -> Tensor:
        """Return Φ_S(x)."""
        return self.projection(self.trunk(x))[:, : self.n_stable]

    def unstable_features(self, x: Tensor) -> Tensor:
        """Return Φ_U(x)."""
        if self.unstable_trunk is None:
            return self.features(x)[1]
        return self.unstable_projection(self.unstable_trunk(x))

    def stable_logits(self, stable_features: Tensor) -> Tensor:
        """Return the K logits of h_S."""
        return self.all_classes(self.stable_head(stable_features))

    def unstable_logits(self, unstable_features: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return the K logits of h_U^e, rows of domain e by its own head."""
        parts = unstable_features.split(list(sizes))
        logits = [
            p @ w.T + b for p, w, b in zip(parts, self.unstable_weight, self.unstable_bias, strict=True)
        ]
        return self.all_classes(torch.cat(logits))

    def forward(self, x: Tensor, sizes: Sequence[int]) -> Outputs:
        """Run rows of all training domains, `sizes` of them each, in the order of the domains."""
        stable, unstable = self.features(x)
        return Outputs(stable, unstable, self.stable_logits(stable), self.unstable_logits(unstable, sizes))

    def all_classes(self, logits: Tensor) -> Tensor:
        """Give two classes their first logit, zero; more classes have all of theirs."""
        if self.n_classes > 2:
            return logits
        return torch.cat([torch.zeros_like(logits), logits], dim=1)

    def stable_parameters(self) -> list[nn.Parameter]:
        """Parameters that f_S depends on."""
        modules = [self.trunk, self.projection, self.stable_head]
        return [p for module in modules for p in module.parameters() if p.requires_grad]

    def unstable_parameters(self) -> list[nn.Parameter]:
        """Parameters that only Φ_U and the heads h_U^e depend on."""
        modules = [self.unstable_projection]
        if self.unstable_trunk is not None:
            modules.append(self.unstable_trunk)
        own = [p for module in modules for p in module.parameters() if p.requires_grad]
        return [*own, self.unstable_weight, self.unstable_bias]


def seed_of(*parts: int) -> int:
    """Return a seed for a part of a run; different parts give unrelated ones.

    Examples
    --------
    >>> seed_of(0, 1) != seed_of(0, 2)
    True
    """
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))


def build_network(
    make_trunk: Callable[[], nn.Module],
    row: Tensor,
    *,
    split: str,
    n_classes: int,
    n_domains: int,
    n_stable: int | str | None = "auto",
    n_unstable: int | str | None = "auto",
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
        See `SplitNetwork`. "auto" is None, except for the Φ_U of a second trunk, which is narrow: 1 for two
        classes, else K.
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
    narrow = None if split == "shared" else 1 if n_classes == 2 else n_classes
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
            n_stable=None if isinstance(n_stable, str) else n_stable,
            n_unstable=narrow if isinstance(n_unstable, str) else n_unstable,
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


def guess_classes(network: SplitNetwork, source: ArraySource) -> np.ndarray:
    """Return Û of every row: the class that the unstable head of its own domain raises most above its share.

    Where all classes are equally frequent that is the likeliest one; a rare class is never the likeliest
    where the unstable features alone speak for it.

    Examples
    --------
    >>> import torch
    >>> from sfboost.torch.rows import ArraySource
    >>> net = SplitNetwork(torch.nn.Linear(1, 2), n_features=2, n_classes=2, n_domains=1)
    >>> guess_classes(net, ArraySource(torch.zeros(3, 1), np.zeros(3, int), np.zeros(3, int), 2, 1)).shape
    (3,)
    """
    guess = np.zeros(len(source.labels), dtype=int)
    network.eval()
    heads = zip(network.unstable_weight, network.unstable_bias, source.log_prior(), strict=True)
    with torch.no_grad():
        for rows, (weight, bias, log_prior) in zip(source.domain_rows, heads, strict=True):
            for part in np.array_split(rows, max(1, len(rows) // CHUNK)):
                logits = network.unstable_features(source.rows(part)) @ weight.T + bias
                raised = network.all_classes(logits) - log_prior.to(logits)
                guess[part] = raised.argmax(1).cpu().numpy()
    return guess


class Ensemble(nn.Module):
    """The mean of several `SplitNetwork`: of their stable logits, and of what their Φ_U say.

    Φ_U is the logit that the unstable head of one domain gives it: each network begins with a direction of
    its own, and the mean of features that point different ways says nothing. Of more than two classes the
    logits are centred: what all classes share says nothing about which one it is.

    Parameters
    ----------
    members : sequence of SplitNetwork
    surest : int
        The domain whose head is taken, see `surest_domain`.

    Examples
    --------
    >>> members = [SplitNetwork(nn.Linear(2, 3), n_features=3, n_classes=2, n_domains=2, n_unstable=1,
    ...                         unstable_trunk=nn.Linear(2, 3)) for _ in "abc"]
    >>> [part.shape for part in Ensemble(members).features(torch.zeros(5, 2))]
    [torch.Size([5, 9]), torch.Size([5, 1])]
    """

    surest: Tensor

    def __init__(self, members: Sequence[SplitNetwork], surest: int = 0) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.n_unstable = len(members[0].stable_head.weight)
        self.register_buffer("surest", torch.tensor(surest))

    def stable_features(self, x: Tensor) -> Tensor:
        """Return Φ_S of all members next to each other."""
        members: Any = self.members
        return torch.cat([member.stable_features(x) for member in members], dim=1)

    def unstable_features(self, x: Tensor) -> Tensor:
        """Return Φ_U(x)."""
        return torch.stack([self.said(member, x) for member in self.members]).mean(0)

    def said(self, member: Any, x: Tensor) -> Tensor:
        """Return the logits of one member's unstable head."""
        head = int(self.surest)
        logits = member.unstable_features(x) @ member.unstable_weight[head].T + member.unstable_bias[head]
        return logits if logits.shape[1] == 1 else logits - logits.mean(1, keepdim=True)

    def features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (Φ_S(x), Φ_U(x))."""
        return self.stable_features(x), self.unstable_features(x)

    def stable_logits(self, stable_features: Tensor) -> Tensor:
        """Return the K logits of f_S."""
        parts = stable_features.chunk(len(self.members), dim=1)
        members: Any = self.members
        logits = [member.stable_logits(part) for member, part in zip(members, parts, strict=True)]
        return torch.stack(logits).mean(0)


def surest_domain(members: Sequence[SplitNetwork]) -> int:
    """Return the domain in which the unstable features say most.

    Examples
    --------
    >>> net = SplitNetwork(nn.Linear(2, 4), n_features=4, n_classes=2, n_domains=2)
    >>> with torch.no_grad():
    ...     _ = net.unstable_weight[1].mul_(3.0)
    >>> surest_domain([net])
    1
    """
    sizes = [member.unstable_weight.detach().flatten(1).norm(dim=1) for member in members]
    return int(torch.stack(sizes).mean(0).argmax())
