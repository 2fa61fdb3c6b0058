"""What f_S shows of Φ_U within a class, as one number."""

import runpy
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from sfboost.torch.folds import stable_logits  # noqa: E402
from sfboost.torch.leak_slope import find_leak_slope, without_leak  # noqa: E402
from sfboost.torch.side_by_side import mean_network  # noqa: E402

from sfboost.torch import SFBClassifier  # noqa: E402
from sfboost.torch.bounded import Bounded  # noqa: E402
from sfboost.torch.split_network import SplitNetwork  # noqa: E402

STUDIES = Path(__file__).parents[2] / "studies"


def _rows(n, leak, n_classes=2, agreement=(0.9, 0.8), seed=0):
    """Logits of an f_S that reads so much of a cue, what Φ_U says of the cue, classes and domains."""
    rng = np.random.default_rng(seed)
    y, domain = rng.integers(0, n_classes, n), rng.integers(0, 2, n)
    other = (y + rng.integers(1, n_classes, n)) % n_classes
    cue = np.where(rng.random(n) < np.array(agreement)[domain], y, other)
    unstable = 2.0 * np.eye(n_classes)[cue] + rng.normal(0, 0.1, (n, n_classes))
    said = np.eye(n_classes)[y] + rng.normal(0, 1.0, (n, n_classes)) + leak * np.eye(n_classes)[cue]
    if n_classes == 2:
        unstable = unstable[:, 1:] - unstable[:, :1]
    bounded = Bounded.of(unstable, np.bincount(y) / n)
    return said, bounded.apply(unstable), y, domain


def _gap(logits, cue, y):
    """Accuracy where the cue is right less that where it is wrong."""
    right = logits.argmax(axis=1) == y
    return right[cue == y].mean() - right[cue != y].mean()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_f_s_reads_of_the_unstable_part_is_taken_out_also_where_its_agreement_is_another(n_classes):
    said, unstable, y, domain = _rows(20_000, 0.8, n_classes)
    slope = find_leak_slope(said, unstable, y, domain)
    said, unstable, y, _ = _rows(20_000, 0.8, n_classes, agreement=(0.1, 0.1), seed=1)
    cue = unstable.argmax(axis=1) if n_classes > 2 else (unstable[:, 0] > 0).astype(int)
    assert _gap(said, cue, y) > 0.2
    assert abs(_gap(without_leak(said, unstable, slope), cue, y)) < 0.02


def test_what_may_be_chance_is_left_in_and_what_is_clear_is_taken_out_nearly_whole():
    shares = []
    for leak in (0.0, 3.0):
        slopes = [find_leak_slope(*_rows(500, leak, seed=seed)) for seed in range(40)]
        shares.append(np.mean([slope == 0.0 for slope in slopes]))
    assert 0.7 < shares[0] < 0.95  # less than one standard error, or negative: five draws in six
    assert shares[1] == 0.0


def test_a_leak_the_other_way_round_is_none_that_training_teaches_and_is_left_alone():
    assert find_leak_slope(*_rows(20_000, -0.8)) == 0.0


@pytest.mark.parametrize(("positive", "enough"), [(0.5, True), (0.1, False)])
def test_a_score_is_flattened_cell_by_cell_only_if_each_class_has_rows_wherever_phi_u_points(
    positive, enough
):
    """Of 5000 rows a tenth is positive, and a fifth of these, 100, are where Φ_U points elsewhere."""
    rng = np.random.default_rng(0)
    y = (rng.random(5000) < positive).astype(int)
    unstable = np.where(rng.random(5000) < 0.8, y, 1 - y)[:, None] * 2.0 - 1.0
    model = SFBClassifier()
    model.classes_ = np.array([0, 1])
    model.validation_ = (None, unstable, y, rng.integers(0, 2, 5000))
    assert model._fills_cells(y, model.validation_[3]) is enough


def test_a_part_that_says_the_same_of_all_rows_leaves_f_s_as_it_is():
    said, unstable, y, domain = _rows(100, 0.5)
    slope = find_leak_slope(said, np.ones_like(unstable), y, domain)
    assert slope == 0.0
    assert without_leak(said, unstable, slope) is said


def test_the_scale_of_one_class_logit_more_or_less_does_not_matter():
    said, unstable, y, domain = _rows(500, 0.5)
    moved = said + np.random.default_rng(2).normal(size=(500, 1))
    assert find_leak_slope(moved, unstable, y, domain) == pytest.approx(
        find_leak_slope(said, unstable, y, domain)
    )


def test_the_mean_of_members_reads_what_they_read_times_its_stretch():
    said, unstable, y, domain = _rows(5000, 0.6)
    rng = np.random.default_rng(3)
    x = torch.from_numpy(np.c_[said[:, 1] - said[:, 0], rng.normal(size=(len(y), 3))])
    members = []
    for k in range(3):
        member = SplitNetwork(
            torch.nn.Identity(),
            n_features=4,
            n_classes=2,
            n_domains=2,
            n_unstable=1,
            unstable_trunk=torch.nn.Identity(),
        ).double()
        with torch.no_grad():
            member.stable_head.weight.copy_(torch.eye(4)[:1] + 0.5 * torch.eye(4)[1 + k])
        members.append(member)
    whole = mean_network(members, stretch=1.3)
    slopes = [
        find_leak_slope(stable_logits(network, x).numpy(), unstable, y, domain)
        for network in (*members, whole)
    ]
    assert slopes[-1] == pytest.approx(1.3 * np.mean(slopes[:-1]), rel=0.02)


@pytest.mark.long
def test_a_cue_that_no_view_hides_is_taken_out_of_f_s_and_by_chance_agreement_the_answer_is_hardly_worse():
    """Lines at two sides, with training domains that hardly differ: f_S of a search reads them."""
    study = runpy.run_path(str(STUDIES / "learn_strangers.py"), run_name="read")
    scores = study["run"]("two sides, alike", 0)["scores"]
    like, chance, reversed_ = scores["stable"]
    assert like - reversed_ < 0.1  # 0.134 with the slope left in
    assert scores["answer"][1] > chance - 0.04  # 0.09 below
    assert scores["answer"][2] > scores["ORACLE"][2] - 0.04  # 0.11 below
