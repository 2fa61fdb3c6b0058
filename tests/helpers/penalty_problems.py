"""Small problems on which a penalty is compared with a plain autograd reference."""

import pytest
import torch

from sfboost.torch.objective import DomainOutput


def linear_problem(n_classes=3, n_domains=3, seed=0, n=11, d=4):
    """A linear head with bias on random features, two-class logits padded by a zero column."""
    g = torch.Generator().manual_seed(seed)
    out = 1 if n_classes == 2 else n_classes
    weight = torch.randn(out, d, generator=g, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(out, generator=g, dtype=torch.float64, requires_grad=True)
    domains, labels = [], []
    for e in range(n_domains):
        phi = torch.randn(n + e, d, generator=g, dtype=torch.float64, requires_grad=True)
        y = torch.randint(0, n_classes, (n + e,), generator=g)
        logits = phi @ weight.T + bias
        if n_classes == 2:
            logits = torch.cat([torch.zeros_like(logits), logits], 1)
        domains.append(DomainOutput(phi, logits, torch.eye(n_classes, dtype=torch.float64)[y]))
        labels.append(y)
    return domains, labels, weight, bias


def same_with_gradient(value, reference, wrt):
    assert value.item() == pytest.approx(reference.item(), rel=1e-10, abs=1e-12)
    got = torch.autograd.grad(value, wrt, retain_graph=True)
    want = torch.autograd.grad(reference, wrt, retain_graph=True)
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)


def two_part_domain(n=40, n_classes=3, seed=0, d_s=2, d_u=4):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, n_classes, (n,), generator=g)

    def draw(k):
        return torch.randn(n, k, generator=g, dtype=torch.float64, requires_grad=True)

    target = torch.eye(n_classes, dtype=torch.float64)[y]
    return DomainOutput(draw(d_s), draw(n_classes), target, draw(d_u), draw(n_classes)), y


def crossed_domains():
    """Every pair of values equally often within each class; and one feature twice. The label moves both."""
    s = torch.tensor([-1.0, -1.0, 1.0, 1.0], dtype=torch.float64).repeat(2)
    u = torch.tensor([-2.0, 2.0, -2.0, 2.0], dtype=torch.float64).repeat(2)
    y = torch.eye(2, dtype=torch.float64)[[0] * 4 + [1] * 4]
    s, u = s + 3 * y[:, 1], u + 5 * y[:, 1]  # dependent overall, independent within classes

    def of(unstable):
        zero = torch.zeros_like(s)
        logits = torch.stack([zero, s], 1), torch.stack([zero, unstable], 1)
        return DomainOutput(s[:, None], logits[0], y, unstable[:, None], logits[1])

    return of(u), of(s)
