"""Independence penalties against plain references, and their zeros."""

import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from sfboost.torch.independence import INDEPENDENCE_PENALTIES, make_independence_penalty  # noqa: E402
from sfboost.torch.independence.hsic import ConditionalHSIC  # noqa: E402
from sfboost.torch.independence.proxy import FeatureProxy, LogitProxy  # noqa: E402
from sfboost.torch.outputs import DomainOutput  # noqa: E402


def _domain(n=40, n_classes=3, seed=0, d_s=2, d_u=4):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, n_classes, (n,), generator=g)

    def draw(k):
        return torch.randn(n, k, generator=g, dtype=torch.float64, requires_grad=True)

    target = torch.eye(n_classes, dtype=torch.float64)[y]
    return DomainOutput(draw(d_s), draw(n_classes), target, draw(d_u), draw(n_classes)), y


def _check(value, reference, wrt):
    assert value.item() == pytest.approx(reference.item(), rel=1e-10)
    for a, b in zip(torch.autograd.grad(value, wrt), torch.autograd.grad(reference, wrt), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_proxy_is_the_sum_of_absolute_covariances_of_matching_logits():
    domains = [_domain(seed=s) for s in (1, 2)]
    total = 0.0
    for domain, y in domains:
        for k in range(3):
            r = 0.0
            for c in range(3):
                rows = y == c
                f_u = domain.unstable_logits[rows, k]
                r = r + (domain.stable_logits[rows, k] * (f_u - f_u.mean())).sum()
            total = total + (r / len(y)).abs()
    wrt = [t for d, _ in domains for t in (d.stable_logits, d.unstable_logits)]
    _check(LogitProxy()([d for d, _ in domains]), total / 2, wrt)


def test_feature_proxy_sums_over_all_pairs_of_features():
    domain, y = _domain()
    total = 0.0
    for j in range(2):
        for k in range(4):
            r = 0.0
            for c in range(3):
                rows = y == c
                u = domain.unstable_features[rows, k]
                r = r + (domain.stable_features[rows, j] * (u - u.mean())).sum()
            total = total + (r / len(y)).abs()
    _check(FeatureProxy()([domain]), total, [domain.stable_features, domain.unstable_features])


def test_hsic_is_the_trace_formula_averaged_over_classes():
    domain, y = _domain()
    values = []
    for c in range(3):
        a, b = domain.stable_features[y == c], domain.unstable_features[y == c]
        m = len(a)
        k = torch.stack([torch.stack([torch.exp(-((p - q) ** 2).sum()) for q in a]) for p in a])
        lk = torch.stack([torch.stack([torch.exp(-((p - q) ** 2).sum()) for q in b]) for p in b])
        h = torch.eye(m, dtype=torch.float64) - 1.0 / m
        values.append(torch.trace(k @ h @ lk @ h) / (m - 1) ** 2)
    _check(ConditionalHSIC()([domain]), sum(values) / 3, [domain.stable_features, domain.unstable_features])


@pytest.mark.parametrize("name", ["proxy", "proxy-features", "hsic"])
def test_a_penalty_is_zero_when_every_pair_of_values_occurs_equally_often_within_each_class(name):
    s = torch.tensor([-1.0, -1.0, 1.0, 1.0], dtype=torch.float64).repeat(2)
    u = torch.tensor([-2.0, 2.0, -2.0, 2.0], dtype=torch.float64).repeat(2)
    y = torch.eye(2, dtype=torch.float64)[[0] * 4 + [1] * 4]
    # The label moves both features: dependent overall, independent within classes.
    s, u = s + 3 * y[:, 1], u + 5 * y[:, 1]
    zero = torch.zeros_like(s)
    domain = DomainOutput(s[:, None], torch.stack([zero, s], 1), y, u[:, None], torch.stack([zero, u], 1))
    penalty = make_independence_penalty(name)
    assert penalty([domain]).item() == pytest.approx(0.0, abs=1e-12)
    dependent = DomainOutput(s[:, None], torch.stack([zero, s], 1), y, s[:, None], torch.stack([zero, s], 1))
    assert penalty([dependent]).item() > 0.01


def test_a_class_with_one_row_is_left_out():
    domain, _ = _domain(n=3, n_classes=2)
    target = torch.eye(2, dtype=torch.float64)[[0, 0, 1]]
    moved = domain.unstable_logits.detach().clone()
    moved[2] += 100.0
    a = DomainOutput(domain.stable_features, domain.stable_logits, target, moved, domain.unstable_logits)
    b = DomainOutput(domain.stable_features, domain.stable_logits, target, moved, moved)
    assert LogitProxy()([a]).item() == pytest.approx(LogitProxy()([b]).item(), rel=1e-12)
    assert torch.isfinite(ConditionalHSIC()([a]))


def test_hsic_takes_a_random_subsample_of_large_domains():
    domain, _ = _domain(n=300, n_classes=2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        small = ConditionalHSIC(max_rows=50)([domain]).item()
    assert small > 0
    assert small != ConditionalHSIC(max_rows=300)([domain]).item()


@pytest.mark.parametrize("name", [n for n in INDEPENDENCE_PENALTIES if n != "none"])
def test_outputs_without_unstable_part_are_refused(name):
    z = torch.zeros(2, 2)
    with pytest.raises(ValueError, match="unstable"):
        make_independence_penalty(name)([DomainOutput(z, z, z)])


def test_an_unknown_penalty_is_answered_with_the_names_of_the_known_ones():
    with pytest.raises(ValueError, match="proxy-features"):
        make_independence_penalty("mmd")
