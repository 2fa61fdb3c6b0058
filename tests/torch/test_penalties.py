"""The penalties against plain autograd references, and their zeros."""

import math

import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from penalty_problems import crossed_domains, linear_problem, same_with_gradient, two_part_domain  # noqa: E402

from sfboost.torch.objective import (  # noqa: E402
    INDEPENDENCE_PENALTIES,
    IRM,
    STABILITY_PENALTIES,
    DomainOutput,
    LogitProxy,
    VREx,
    make_independence_penalty,
    make_stability_penalty,
)

F = torch.nn.functional


@pytest.mark.parametrize("n_classes", [2, 3])
def test_irm_is_the_squared_gradient_in_a_dummy_scale(n_classes):
    domains, labels, *wrt = linear_problem(n_classes)
    squares = []
    for domain, y in zip(domains, labels, strict=True):
        scale = torch.ones((), dtype=torch.float64, requires_grad=True)
        risk = F.cross_entropy(scale * domain.stable_logits, y)
        squares.append(torch.autograd.grad(risk, scale, create_graph=True)[0] ** 2)
    same_with_gradient(IRM()(domains), sum(squares) / len(squares), wrt)


def test_irm_is_zero_where_the_scale_is_optimal_in_eachtwo_part_domain():
    logits = torch.tensor([[0.0, math.log(3.0)]], dtype=torch.float64).repeat(4, 1)
    target = torch.eye(2, dtype=torch.float64)[[1, 1, 1, 0]]
    assert IRM()([DomainOutput(logits, logits, target)] * 2).item() == pytest.approx(0.0, abs=1e-30)
    assert IRM()([DomainOutput(logits, 2 * logits, target)] * 2).item() > 0.01


def test_vrex_is_the_population_variance_of_the_risks():
    domains, labels, *wrt = linear_problem(3)
    risks = torch.stack([F.cross_entropy(d.stable_logits, y) for d, y in zip(domains, labels, strict=True)])
    same_with_gradient(VREx()(domains), risks.var(correction=0), wrt)
    assert VREx()(domains[:1] * 3).item() == 0.0


def test_proxy_is_the_sum_of_absolute_covariances_of_matching_logits():
    domains = [two_part_domain(seed=s) for s in (1, 2)]
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
    same_with_gradient(LogitProxy()([d for d, _ in domains]), total / 2, wrt)


def test_the_proxy_is_zero_where_logits_are_crossed_within_each_class():
    crossed, dependent = crossed_domains()
    assert LogitProxy()([crossed]).item() == pytest.approx(0.0, abs=1e-12)
    assert LogitProxy()([dependent]).item() > 0.01


def test_a_class_with_one_row_is_left_out():
    domain, _ = two_part_domain(n=3, n_classes=2)
    target = torch.eye(2, dtype=torch.float64)[[0, 0, 1]]
    moved = domain.unstable_logits.detach().clone()
    moved[2] += 100.0
    a = DomainOutput(domain.stable_features, domain.stable_logits, target, moved, domain.unstable_logits)
    b = DomainOutput(domain.stable_features, domain.stable_logits, target, moved, moved)
    assert LogitProxy()([a]).item() == pytest.approx(LogitProxy()([b]).item(), rel=1e-12)


def test_outputs_without_unstable_part_are_refused():
    z = torch.zeros(2, 2)
    with pytest.raises(ValueError, match="unstable"):
        LogitProxy()([DomainOutput(z, z, z)])


def test_an_unknown_penalty_is_answered_with_the_names_of_the_known_ones():
    with pytest.raises(ValueError, match=f"{', '.join(STABILITY_PENALTIES)}. Or pass an nn.Module"):
        make_stability_penalty("rex")
    with pytest.raises(ValueError, match=f"{', '.join(INDEPENDENCE_PENALTIES)}. Or pass an nn.Module"):
        make_independence_penalty("mmd")
