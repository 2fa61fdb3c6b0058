"""Settings that find themselves: what the search chooses, what it reads, and how it ends."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

import sfboost  # noqa: E402
from sfboost.torch import Plan, SFBClassifier, search  # noqa: E402
from sfboost.torch.candidates import Candidate, first_candidates, variants  # noqa: E402
from sfboost.torch.networks import VIEWS  # noqa: E402
from sfboost.torch.plan import Goal  # noqa: E402
from sfboost.torch.progress import TrainingProgress  # noqa: E402
from sfboost.torch.rows import balancing_weights  # noqa: E402
from sfboost.torch.search import Search, make_folds  # noqa: E402
from sfboost.torch.split_network import Ensemble, SplitNetwork  # noqa: E402
from sfboost.torch.trainer import TrainingDivergedError  # noqa: E402


def _table(agreement, n, rng):
    """The column 0 is stable, column 1 follows the label as often as it agrees, column 2 is noise."""
    y = rng.integers(0, 2, n)
    right = rng.random((n, 2)) < [0.75, agreement]
    columns = np.where(right, y[:, None], 1 - y[:, None]) * 2.0 - 1.0
    return np.c_[columns, rng.normal(size=n)], y


def _images(agreement, n, rng):
    """Left or right half bright says the class three times in four; red or green as often as it agrees."""
    y = rng.integers(0, 2, n)
    shape, colour = np.where(rng.random((n, 2)) < [0.75, agreement], y[:, None], 1 - y[:, None]).T
    X = np.zeros((n, 2, 4, 4), dtype=np.float32)
    for i in range(n):
        X[i, colour[i], :, 2 * shape[i] : 2 * shape[i] + 2] = 1.0
    return X + rng.normal(0, 0.3, X.shape).astype(np.float32), y


def _training(draw, n, agreements=(0.95, 0.8), seed=0):
    rng = np.random.default_rng(seed)
    parts = [draw(a, n, rng) for a in agreements]
    X, y = (np.concatenate(both) for both in zip(*parts, strict=True))
    return X, y, np.repeat([f"e{i}" for i in range(len(agreements))], n)


def _search(draw, n, agreements=(0.95, 0.8), budget=8, **options):
    X, y, d = _training(draw, n, agreements)
    return Search(
        torch.from_numpy(X).float(),
        y,
        np.unique(d, return_inverse=True)[1],
        **({"goal": Goal(), "network": "auto", "views": VIEWS, "seed": 0} | options),
        budget=budget,
        progress=TrainingProgress(0, "search"),
    )


@pytest.fixture
def brief(monkeypatch):
    """For what does not depend on how well anything is learned."""
    monkeypatch.setattr(search, "_PLAN", search._PLAN.changed(steps=10, unstable_steps=1, min_gain=-9.0))


@pytest.fixture(scope="module")
def images():
    X, y, d = _training(_images, 250)
    return SFBClassifier(plan=Plan(budget=3)).fit(X, y, sample_domain=d)


@pytest.mark.long
@pytest.mark.parametrize(("draw", "n"), [(_table, 1000), (_images, 300)])
def test_no_settings_give_a_stable_part_and_adapt_where_the_other_is_reversed(draw, n):
    X, y, d = _training(draw, n)
    model, rng = SFBClassifier().fit(X, y, sample_domain=d), np.random.default_rng(5)
    for agreement in (0.9, 0.5, 0.1):
        X, y = draw(agreement, 800, rng)
        assert np.mean(model.predict_stable_proba(X).argmax(axis=1) == y) > 0.69
    assert model.adapt(X).score(X, y) > 0.85


def test_of_images_with_colour_grey_is_a_view_unless_other_views_are_named(images, brief):
    first = {"whole, balanced", "grey", "grey, balanced"}
    assert {line["candidate"] for line in images.search_} == first
    X, y, d = _training(_images, 60)
    named = SFBClassifier(views=[torch.sign], plan=Plan(budget=3)).fit(X, y, sample_domain=d)
    assert {line["candidate"] for line in named.search_} == {"whole, balanced", "sign", "sign, balanced"}


def test_the_table_of_the_search_begins_with_the_chosen_one_and_keeps_to_the_budget(images):
    found = images.search_
    assert [line["chosen"] for line in found] == [True, False, False]
    assert found[0]["risk"] == min(line["risk"] for line in found)
    assert {line["risk_left_out"] for line in found} == {None}  # two domains leave none out


def test_every_row_judges_a_network_that_it_neither_taught_nor_stopped(images):
    _, y, d = _training(_images, 250)
    folds = make_folds(y, np.unique(d, return_inverse=True)[1], 0)
    for fold in folds:
        parts = [fold.train, fold.stop, fold.judge]
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(500))
    assert sorted(np.concatenate([fold.judge for fold in folds])) == list(range(500))
    assert {len(part) for part in images.validation_} == {500}
    many = make_folds(np.tile(y, 10), np.zeros(5000, int), 0)
    assert len(many) == 1  # of many rows one fold


def test_few_rows_of_a_class_are_in_every_fold():
    y = np.repeat([0, 1], [90, 5])
    for fold in make_folds(y, np.zeros(95, int), 3):
        assert [int(y[part].sum()) for part in (fold.train, fold.stop, fold.judge)] == [3, 1, 1]


def test_balancing_weights_make_label_and_guess_independent_within_each_domain():
    rng = np.random.default_rng(0)
    y, domain = rng.integers(0, 3, 900), np.repeat([0, 1], [300, 600])
    guess = np.where(rng.random(900) < 0.7, y, rng.integers(0, 3, 900))
    weight = balancing_weights(y, guess, domain)
    for name in (0, 1):
        here = domain == name
        joint = np.zeros((3, 3))
        np.add.at(joint, (y[here], guess[here]), weight[here])
        joint /= joint.sum()
        np.testing.assert_allclose(joint, np.outer(joint.sum(1), joint.sum(0)), atol=1e-12)


def test_the_unstable_part_says_the_logits_of_one_domain_without_what_all_classes_share():
    torch.manual_seed(0)
    parts = [
        SplitNetwork(torch.nn.Linear(4, 3), n_features=3, n_classes=3, n_domains=2, n_unstable=3,
                     unstable_trunk=torch.nn.Linear(4, 3))
        for _ in "ab"
    ]  # fmt: skip
    x, whole = torch.randn(50, 4), Ensemble(parts, surest=1)
    with torch.no_grad():
        said = whole.unstable_features(x)
        logits = torch.stack([part.unstable_logits(part.unstable_features(x), (0, 50)) for part in parts])
        stable = torch.stack([part.stable_logits(part.stable_features(x)) for part in parts]).mean(0)
        torch.testing.assert_close(whole.stable_logits(whole.stable_features(x)), stable)
    assert said.sum(1).abs().max() < 1e-5
    torch.testing.assert_close(said.softmax(1), logits.mean(0).softmax(1))


@pytest.mark.parametrize(
    ("draw", "agreements", "budget"),
    [(_table, (0.95, 0.8), 2), (_table, (0.95, 0.8, 0.7), 1), (_images, (0.95, 0.8, 0.7), 8)],
)
def test_as_much_is_done_as_is_announced_and_at_most_eight_candidates_are_tried(
    draw, agreements, budget, brief
):
    searching, totals = _search(draw, 60, agreements, budget), []
    step = searching.progress.step
    searching.progress.step = lambda what: (step(what), totals.append(searching.progress.total))
    assert len(searching.run().table) == budget
    assert set(totals) == {len(totals)}


@pytest.mark.long
def test_with_three_domains_each_is_left_out_and_the_worse_of_two_risks_decides():
    """The guess is about the column that seldom differs; the third domain alone shows the other."""
    found = _search(_table, 300, (0.95, 0.8, 0.3)).run()
    finals = found.table[: search._FINALISTS]
    worse = [max(line["risk"], line["risk_left_out"]) for line in found.table if line["risk_left_out"]]
    assert len(worse) == search._FINALISTS
    assert max(finals[0]["risk"], finals[0]["risk_left_out"]) == min(worse)


def test_a_budget_that_nothing_is_searched_with_is_told(brief):
    X, y, d = _training(_table, 60)
    with pytest.warns(UserWarning, match=r"budget=3 is not used"):
        SFBClassifier("small", plan=Plan(steps=5, unstable_steps=5, min_gain=-9.0, budget=3)).fit(
            X, y, sample_domain=d
        )


def test_a_search_leaves_the_random_states_alone_and_does_not_depend_on_the_order_of_domains(brief):
    X, y, d = _training(_table, 30)
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
    plan = Plan(budget=1)
    one, two = (SFBClassifier(plan=plan).fit(X, y, sample_domain=d) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    mixed = np.argsort(np.arange(60) % 30, kind="stable")
    other = SFBClassifier(plan=plan).fit(X[mixed], y[mixed], sample_domain=d[mixed])
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-6)
    seed = SFBClassifier(plan=plan, random_state=1).fit(X, y, sample_domain=d)
    assert not np.array_equal(seed.predict_proba(X), one.predict_proba(X))


def test_a_penalty_and_a_weight_that_are_named_are_the_only_ones():
    def tried(**told):
        made = variants(Candidate(view="grey"), Goal(**told))
        assert {candidate.view for candidate in made} == {"grey"}
        return {(candidate.penalty, candidate.penalty_weight) for candidate in made}

    every = {("none", 0.0), ("irm", 10.0), ("irm", 100.0), ("vrex", 100.0), ("vrex", 1000.0)}
    assert tried() == every
    assert tried(penalty_weight=7.0) == {("none", 0.0), ("irm", 7.0)}
    assert tried(penalty="vrex") == {("none", 0.0), ("vrex", 10.0)}
    assert tried(penalty=torch.nn.Identity()) == {("none", 0.0), ("own", 10.0)}
    assert tried(penalty="none") == {("none", 0.0)}
    assert len(first_candidates(["whole", "grey"])) + len(variants(Candidate(), Goal())) == Plan.budget


def test_a_searched_model_predicts_the_same_from_its_file(brief, tmp_path):
    X, y, d = _training(_images, 60)
    model = SFBClassifier(plan=Plan(budget=2)).fit(X, y, sample_domain=d)
    model.save(tmp_path / "found.sfb")
    other = sfboost.load(tmp_path / "found.sfb")
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(other.transform(X)[1], model.transform(X)[1])


def test_a_candidate_that_diverges_is_out_and_the_others_go_on(brief, monkeypatch):
    learn = Search._learn_stable

    def diverging(self, candidate, *args):
        if candidate.view == "grey":
            raise TrainingDivergedError("the loss is not finite")
        return learn(self, candidate, *args)

    monkeypatch.setattr(Search, "_learn_stable", diverging)
    found = _search(_images, 60, budget=3).run()
    assert [line["candidate"] for line in found.table] == ["whole, balanced"]
    monkeypatch.setattr(Search, "_learn_stable", lambda self, *args: diverging(self, Candidate(view="grey")))
    with pytest.raises(TrainingDivergedError):
        _search(_images, 60, budget=3).run()
