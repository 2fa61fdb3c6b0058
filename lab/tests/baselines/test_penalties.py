"""The paper's other penalties against plain autograd references, and their zeros."""

import inspect

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from penalty_problems import linear_problem, same_with_gradient  # noqa: E402
from scipy import optimize, stats  # noqa: E402

from sfboost.torch.objective import (  # noqa: E402
    STABILITY_PENALTIES,
    DomainOutput,
)
from sfboost_lab.baselines.learned.penalties import (  # noqa: E402
    EQRM,
    IGA,
    PENALTIES,
    CLOvE,
    Fishr,
    GroupDRO,
    IRMMatrix,
    SpectralDecoupling,
    make,
)

F = torch.nn.functional


@pytest.mark.parametrize("n_classes", [2, 3])
def test_irm_matrix_is_the_mean_squared_gradient_in_the_head(n_classes):
    domains, labels, weight, _ = linear_problem(n_classes)
    squares = []
    for domain, y in zip(domains, labels, strict=True):
        gradient = torch.autograd.grad(
            F.cross_entropy(domain.stable_logits, y), weight, create_graph=True, retain_graph=True
        )[0]
        squares.append(gradient.square().mean())
    features = [domain.stable_features for domain in domains]
    same_with_gradient(IRMMatrix()(domains), sum(squares) / len(squares), features)


def test_irm_matrix_is_zero_at_the_optimal_head_of_onetwo_part_domain():
    domains, labels, *_ = linear_problem(3, n_domains=1, n=60)
    phi, y = domains[0].stable_features.detach(), domains[0].target

    def risk(w):
        w = torch.tensor(w.reshape(3, 4), requires_grad=True)
        value = F.cross_entropy(phi @ w.T, labels[0])
        return value.item(), torch.autograd.grad(value, w)[0].numpy().ravel()

    best = optimize.minimize(risk, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-10})
    logits = phi @ torch.tensor(best.x.reshape(3, 4)).T
    assert IRMMatrix()([DomainOutput(phi, logits, y)]).item() < 1e-16


def test_eqrm_is_the_root_of_the_kernel_distribution_function():
    domains, *_ = linear_problem(3)
    risks = np.array([d.risk.item() for d in domains])
    bandwidth = 1.06 * risks.std(ddof=1) * len(risks) ** -0.2
    quantile = optimize.brentq(
        lambda q: stats.norm.cdf((q - risks) / bandwidth).mean() - 0.9, -50, 50, xtol=1e-13
    )
    assert EQRM(alpha=0.9)(domains).item() == pytest.approx(quantile - risks.mean(), rel=1e-9)


@pytest.mark.parametrize("penalty", [EQRM(alpha=0.75), EQRM(log_tail=-1000.0)], ids=["alpha", "log_tail"])
def test_eqrm_has_the_gradient_of_finite_differences(penalty):
    base = torch.tensor([0.3, 0.5, 0.9], dtype=torch.float64, requires_grad=True)

    def domains_with(risks):
        # log-odds whose cross-entropy against class 1 is the wanted risk
        odds = [-torch.log(torch.expm1(r)) for r in risks]
        rows = [torch.stack([torch.zeros_like(o), o])[None] for o in odds]
        return [DomainOutput(z, z, torch.eye(2, dtype=torch.float64)[1:]) for z in rows]

    assert torch.autograd.gradcheck(lambda r: penalty(domains_with(r)), (base,), eps=1e-6, atol=1e-6)


def test_eqrm_in_the_tail_multiplies_the_gap_of_two_risks_by_a_known_number():
    domains, *_ = linear_problem(3, n_domains=2)
    gap = abs(domains[0].risk.item() - domains[1].risk.item())
    for log_tail, factor in [(-100, 9.23), (-500, 20.6), (-1000, 29.2), (-10000, 92.3)]:
        assert EQRM(log_tail=log_tail)(domains).item() / gap == pytest.approx(factor, rel=3e-3)


def test_eqrm_is_zero_with_a_finite_gradient_when_the_risks_are_equal():
    domains, _, weight, bias = linear_problem(3, n_domains=1)
    for penalty in (EQRM(alpha=0.9), EQRM(log_tail=-1000.0)):
        value = penalty(domains * 3)
        assert abs(value.item()) < 1e-9
        assert all(
            torch.isfinite(g).all() for g in torch.autograd.grad(value, [weight, bias], retain_graph=True)
        )


@pytest.mark.parametrize("bad", [{"alpha": 1.0}, {"alpha": 0.5, "log_tail": -1.0}, {"log_tail": 0.0}])
def test_eqrm_refuses_a_quantile_that_is_none(bad):
    with pytest.raises(ValueError, match=r"alpha|log_tail"):
        EQRM(**bad)


def test_clove_is_the_double_sum_over_pairs():
    domains, labels, *wrt = linear_problem(3)
    values = []
    for domain, y in zip(domains, labels, strict=True):
        proba = domain.stable_logits.softmax(1)
        total = 0.0
        for i in range(len(y)):
            for j in range(len(y)):
                r_i, r_j = proba[i].max(), proba[j].max()
                c_i, c_j = float(proba[i].argmax() == y[i]), float(proba[j].argmax() == y[j])
                total = total + (c_i - r_i) * (c_j - r_j) * torch.exp(-(r_i - r_j).abs() / 0.4)
        values.append(total / len(y) ** 2)
    same_with_gradient(CLOvE()(domains), sum(values) / len(values), wrt)


def test_clove_is_zero_when_confidence_is_accuracy():
    logits = torch.log(torch.tensor([[0.1, 0.2, 0.7]], dtype=torch.float64)).repeat(10, 1)
    target = torch.eye(3, dtype=torch.float64)[[2] * 7 + [1, 1, 0]]
    assert CLOvE()([DomainOutput(logits, logits, target)]).item() == pytest.approx(0.0, abs=1e-30)


def test_clove_looks_at_no_more_rows_than_asked():
    # All rows alike: any subsample has the value of the whole.
    logits = torch.tensor([[0.0, 1.0]], dtype=torch.float64).repeat(500, 1)
    domain = [DomainOutput(logits, logits, torch.eye(2, dtype=torch.float64)[[0] * 500])]
    assert CLOvE(max_rows=16)(domain).item() == pytest.approx(CLOvE(max_rows=500)(domain).item(), rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fishr_is_the_distance_of_the_variances_of_per_row_gradients(n_classes):
    domains, labels, weight, bias = linear_problem(n_classes)
    variances = []
    for domain, y in zip(domains, labels, strict=True):
        rows = []
        for i in range(len(y)):
            loss = F.cross_entropy(domain.stable_logits[i : i + 1], y[i : i + 1])
            gradients = torch.autograd.grad(loss, [weight, bias], create_graph=True, retain_graph=True)
            rows.append(torch.cat([g.flatten() for g in gradients]))
        variances.append(torch.stack(rows).var(0, correction=0))
    stacked = torch.stack(variances)
    reference = (stacked - stacked.mean(0)).square().sum(1).mean()
    same_with_gradient(Fishr()(domains), reference, [d.stable_features for d in domains])
    assert Fishr()(domains[:1] * 2).item() == 0.0


def test_iga_is_the_spread_of_the_domain_gradients():
    domains, labels, weight, bias = linear_problem(3)
    gradients = []
    for domain, y in zip(domains, labels, strict=True):
        risk = F.cross_entropy(domain.stable_logits, y)
        parts = torch.autograd.grad(risk, [weight, bias], create_graph=True, retain_graph=True)
        gradients.append(torch.cat([g.flatten() for g in parts]))
    mean = torch.stack(gradients).mean(0).detach()
    reference = sum(((g - mean) ** 2).sum() for g in gradients)
    same_with_gradient(IGA()(domains, [weight, bias]), reference, [weight, bias])
    assert IGA()(domains[:1] * 2, [weight, bias]).item() == 0.0
    with pytest.raises(ValueError, match="parameters"):
        IGA()(domains)


def test_sd_is_the_mean_squared_log_odds_and_zero_at_zero():
    domains, _, *wrt = linear_problem(2)
    reference = sum((d.stable_logits[:, 1] ** 2).mean() for d in domains) / len(domains)
    same_with_gradient(SpectralDecoupling()(domains), reference, wrt)
    zeros = torch.zeros(3, 2)
    assert SpectralDecoupling()([DomainOutput(zeros, zeros, zeros)]).item() == 0.0


def test_groupdro_moves_weight_to_the_worse_domain_and_is_zero_for_equal_ones():
    domains, *_ = linear_problem(3)
    penalty = GroupDRO(step_size=0.5)
    weights = np.full(3, 1 / 3)
    for _ in range(4):
        value = penalty(domains).item()
        risks = np.array([d.risk.item() for d in domains])
        weights = weights * np.exp(0.5 * risks)
        weights /= weights.sum()
        assert value == pytest.approx(weights @ risks - risks.mean(), rel=1e-10)
    assert GroupDRO()(domains[:1] * 2).item() == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("name", [n for n in PENALTIES if n not in (*STABILITY_PENALTIES, "iga")])
def test_every_penalty_in_the_list_gives_gradients_a_finite_difference_confirms(name):
    # Not IGA: its centre is a constant by definition, and a finite difference sees it move.
    penalty = make(PENALTIES, name).eval()
    domains, _, weight, bias = linear_problem(3, n_domains=2, n=6)
    features = [d.stable_features.detach() for d in domains]
    targets = [d.target for d in domains]

    def value(w, b):
        outputs = [DomainOutput(f, f @ w.T + b, t) for f, t in zip(features, targets, strict=True)]
        return penalty(outputs, [w, b])

    assert torch.autograd.gradcheck(value, (weight, bias), atol=1e-5)


@pytest.mark.parametrize("name", [n for n in PENALTIES if n != "none"])
def test_every_penalty_says_which_paper_it_is_of(name):
    last = inspect.getdoc(PENALTIES[name]).split("\n\n")[-1]
    assert last.startswith("References\n----------\n.. [1] ")


def test_an_unknown_penalty_is_answered_with_the_names_of_the_known_ones():
    with pytest.raises(ValueError, match="vrex"):
        make(PENALTIES, "rex")
