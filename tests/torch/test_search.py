"""Settings that find themselves: what the search chooses, what it reads, and how it ends."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from sfboost.torch.candidates import Candidate, variants  # noqa: E402
from sfboost.torch.folds import balancing_weights, make_folds  # noqa: E402
from sfboost.torch.side_by_side import align_unstable  # noqa: E402
from torch import nn  # noqa: E402

import sfboost  # noqa: E402
from sfboost.torch import Plan, SFBClassifier, members, plot_history, plot_search, search, trainer  # noqa: E402
from sfboost.torch.learning import Learner  # noqa: E402
from sfboost.torch.plan import Goal  # noqa: E402
from sfboost.torch.progress import TrainingProgress  # noqa: E402
from sfboost.torch.rows import ArraySource  # noqa: E402
from sfboost.torch.search import Search  # noqa: E402
from sfboost.torch.split_network import SplitNetwork  # noqa: E402


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


@pytest.fixture
def brief(monkeypatch):
    """For what does not depend on how well anything is learned."""
    monkeypatch.setattr(members, "_PLAN", members._PLAN.changed(steps=10, unstable_steps=10, min_gain=-9.0))
    monkeypatch.setattr(members, "_LONGER", 1)


@pytest.fixture(scope="module")
def table():
    X, y, d = _training(_table, 300)
    return SFBClassifier(plan=Plan(budget=3)).fit(X, y, sample_domain=d)


@pytest.fixture(scope="module")
def images():
    X, y, d = _training(_images, 250)
    return SFBClassifier(plan=Plan(budget=3)).fit(X, y, sample_domain=d)


@pytest.mark.long
@pytest.mark.parametrize(("model", "draw"), [("table", _table), ("images", _images)])
def test_few_rows_and_no_settings_give_a_stable_part_and_adapt_where_the_other_is_reversed(
    model, draw, request
):
    model, rng = request.getfixturevalue(model), np.random.default_rng(5)
    for agreement in (0.9, 0.5, 0.1):
        X, y = draw(agreement, 800, rng)
        assert model.score(X, y) > 0.69
    assert model.adapt(X, answer="paper").score(X, y) > 0.85


def test_the_view_without_the_unstable_part_is_chosen(table):
    assert "columns" in table.search_[0]["candidate"]
    assert table.network_.trunk.trunks[0][0].kept.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.long
def test_of_images_the_view_without_colours_is_chosen(images):
    assert "grey" in images.search_[0]["candidate"]


@pytest.mark.parametrize("model", ["table", pytest.param("images", marks=pytest.mark.long)])
def test_the_table_of_the_search_begins_with_the_chosen_one_and_keeps_to_the_budget(model, request):
    found = request.getfixturevalue(model).search_
    assert [line["chosen"] for line in found] == [True, False, False]
    assert found[0]["risk"] == min(line["risk"] for line in found)


def test_what_is_said_of_f_s_comes_from_every_row_by_a_network_that_did_not_see_it(table):
    proba, unstable, labels, domain = table.validation_
    assert len(proba) == len(unstable) == len(labels) == len(domain) == 600
    _, y, d = _training(_table, 300)
    folds = make_folds(y, np.unique(d, return_inverse=True)[1], 0)
    assert all(len(np.intersect1d(fold.train, fold.held)) == 0 for fold in folds)
    assert sorted(np.concatenate([fold.held for fold in folds])) == list(range(600))


def test_rows_that_judge_a_network_neither_taught_nor_stopped_it():
    X, y, d = _training(_table, 300)
    rows, where = torch.as_tensor(X, dtype=torch.float32), np.unique(d, return_inverse=True)[1]
    first = members.Members(rows, y, where, goal=Goal(), network="narrow", seed=0)
    others = first.stopped_elsewhere()
    for judged, fold in zip(first.folds, others.folds, strict=True):
        assert len(np.intersect1d(judged.held, np.r_[fold.train, fold.held])) == 0
        assert len(np.intersect1d(fold.train, fold.held)) == 0
        assert len(fold.train) + len(fold.held) == len(judged.train)
    many = members.Members(
        rows.repeat(10, 1), np.tile(y, 10), np.zeros(6000, int), goal=Goal(), network="narrow", seed=0
    )
    assert many.stopped_elsewhere() is None  # one fold of many rows


@pytest.mark.long
def test_the_unstable_part_is_learned_until_held_out_rows_stop_it():
    """Whether two columns are equal is what follows the label here, which takes longer than a guess may."""
    X, y, d = _training(_table, 500)
    X[:, 1] *= X[:, 0]
    model = SFBClassifier(plan=Plan(budget=1)).fit(X, y, sample_domain=d)
    learned = [row for row in model.history_ if row["stage"] == "unstable" and "validation" in row]
    for k in range(5):
        seen = [row["validation"] for row in learned if row["fold"] == k]
        assert len(seen) == np.argmin(seen) + 1 + members._PLAN.patience
    corners = np.array([[1, 1, 0], [-1, -1, 0], [1, -1, 0], [-1, 1, 0]], dtype=np.float32)
    same, equal, differ, also = model.transform(corners)[1][:, 0]
    apart = abs((same + equal) - (differ + also)) / 2
    assert max(abs(same - equal), abs(differ - also)) < 0.25 * apart


@pytest.mark.long
def test_the_order_of_the_rows_of_different_domains_does_not_matter_and_a_seed_repeats(brief):
    X, y, d = _training(_table, 30)
    one, two = (SFBClassifier(plan=Plan(budget=1)).fit(X, y, sample_domain=d) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    mixed = np.argsort(np.arange(60) % 30, kind="stable")
    other = SFBClassifier(plan=Plan(budget=1)).fit(X[mixed], y[mixed], sample_domain=d[mixed])
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-6)
    assert not np.array_equal(
        SFBClassifier(plan=Plan(budget=1), random_state=1).fit(X, y, sample_domain=d).predict_proba(X),
        one.predict_proba(X),
    )


@pytest.mark.parametrize(
    "fixed", [{"plan": Plan(budget=0)}, {"plan": Plan(steps=300)}, {"split": "shared"}, {"n_unstable": 2}]
)
def test_settings_that_are_given_are_not_searched_for(fixed, monkeypatch):
    monkeypatch.setattr(Learner, "learn", lambda self: None)  # how well it is learned does not matter
    X, y, d = _training(_table, 30)
    model = SFBClassifier("linear", **fixed)
    assert model.fit(X, y, sample_domain=d).search_ is None


def test_a_found_model_comes_back_from_its_file(table, tmp_path):
    X, _ = _table(0.1, 300, np.random.default_rng(1))
    table.save(tmp_path / "found.sfb")
    again = sfboost.load(tmp_path / "found.sfb")
    np.testing.assert_array_equal(again.predict_proba(X), table.predict_proba(X))
    assert again.search_ == table.search_
    np.testing.assert_array_equal(
        again.adapt(X, answer="paper").predict_proba(X), table.adapt(X, answer="paper").predict_proba(X)
    )


@pytest.mark.long
def test_a_search_goes_on_where_it_was_killed(brief, tmp_path, monkeypatch):
    X, y, d = _training(_table, 30)
    whole = SFBClassifier(plan=Plan(budget=2)).fit(X, y, sample_domain=d)
    taken, step = [], trainer.StageRunner._step

    def counted(self, *args):
        taken.append(self)
        if len(taken) == 190:  # of 250: after the first guess, within the candidates
            raise KeyboardInterrupt
        return step(self, *args)

    monkeypatch.setattr(trainer.StageRunner, "_step", counted)
    with pytest.raises(KeyboardInterrupt):
        SFBClassifier(plan=Plan(budget=2, checkpoint=tmp_path)).fit(X, y, sample_domain=d)
    before = len(taken)
    model = SFBClassifier(plan=Plan(budget=2, checkpoint=tmp_path)).fit(X, y, sample_domain=d)
    assert len(taken) - before < 190
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))


def test_a_module_of_ones_own_and_three_classes_are_searched_too(brief):
    rng = np.random.default_rng(0)
    y, d = rng.integers(0, 3, 150), np.repeat([0, 1], 75)
    X = rng.normal(size=(150, 3)) + 3 * np.eye(3)[y]
    trunk = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.1))
    model = SFBClassifier(trunk, plan=Plan(budget=1)).fit(X, y, sample_domain=d)
    assert model.search_[0]["candidate"].startswith("own")
    assert model.predict_proba(X).shape == (150, 3)
    assert model.transform(X)[1].shape == (150, 3)


@pytest.mark.parametrize("budget", [-1, "soon", "xs", None])
def test_a_budget_that_is_none_is_refused_with_what_it_could_be(budget):
    with pytest.raises(ValueError, match="a number of candidates"):
        SFBClassifier(plan=Plan(budget=budget)).fit([[0.0], [1.0]], [0, 1], sample_domain=[0, 0])


def test_under_balancing_weights_label_and_guess_are_independent_in_every_domain():
    rng = np.random.default_rng(0)
    y, domain = rng.integers(0, 3, 900), rng.integers(0, 2, 900)
    guess = np.where(rng.random(900) < 0.7, y, rng.integers(0, 3, 900))
    weight = balancing_weights(y, guess, domain)
    for name in (0, 1):
        here = domain == name
        joint = np.zeros((3, 3))
        np.add.at(joint, (y[here], guess[here]), weight[here])
        joint /= joint.sum()
        np.testing.assert_allclose(joint, np.outer(joint.sum(1), joint.sum(0)), atol=1e-12)


@pytest.mark.parametrize(
    ("draw", "agreements", "budget"),
    [
        (_table, (0.95, 0.8), 2),
        (_table, (0.95, 0.8, 0.7), 1),
        (_table, (0.95, 0.95), 4),  # some views hide nothing
        (_table, (0.95, 0.8), "0 s"),
        (_images, (0.95, 0.8), "0 s"),
        pytest.param(_table, (0.95, 0.8, 0.7), "auto", marks=pytest.mark.long),
        pytest.param(_images, (0.95, 0.8), "auto", marks=pytest.mark.long),
    ],
)
def test_as_much_is_done_as_is_announced(draw, agreements, budget, brief, caplog):
    X, y, d = _training(draw, 60, agreements)
    with caplog.at_level("INFO", logger="sfboost.torch"):
        SFBClassifier(plan=Plan(budget=budget, verbose=1)).fit(X, y, sample_domain=d)
    told = [re.match(r"search +(\d+) of (\d+)", line) for line in caplog.messages]
    counts = [(int(found[1]), int(found[2])) for found in told if found]
    assert [done for done, _ in counts] == list(range(1, len(counts) + 1))
    finals = next(i for i, found in enumerate(told) if "unstable part" in found.string)
    assert {total for _, total in counts[finals:]} == {len(counts)}
    if not isinstance(budget, str):  # nothing is skipped, nor guessed again
        assert {total for _, total in counts} == {len(counts)}


def test_the_pictures_show_every_candidate_and_every_stage(brief):
    pytest.importorskip("matplotlib", reason="needs the app extra")
    X, y, d = _training(_table, 30)
    model = SFBClassifier(plan=Plan(budget=2)).fit(X, y, sample_domain=d)
    tried, trained = plot_search(model), plot_history(model)
    shown = [label.get_text() for label in tried.get_yticklabels()]
    assert sorted(shown) == sorted(line["candidate"] for line in model.search_)
    assert next(text.get_text() for text in tried.get_legend().get_texts()) == "chosen"
    assert [text.get_text() for text in trained.get_legend().get_texts()] == ["stable", "unstable"]
    assert len({line.get_color() for line in trained.get_lines()}) == 2
    with pytest.raises(ValueError, match="without a search"):
        plot_search(SimpleNamespace(search_=None))


def test_what_the_logits_of_all_classes_share_is_no_unstable_feature():
    torch.manual_seed(0)
    network = SplitNetwork(
        torch.nn.Linear(4, 3),
        n_features=3,
        n_classes=3,
        n_domains=2,
        n_unstable=3,
        unstable_trunk=torch.nn.Linear(4, 3),
    )
    x = torch.randn(50, 4)
    surest = int(network.unstable_weight.detach().flatten(1).norm(dim=1).argmax())
    sizes = (50, 0) if surest == 0 else (0, 50)

    def said():
        with torch.no_grad():
            return network.unstable_logits(network.unstable_features(x), sizes).softmax(1)

    before = said()
    align_unstable([network])
    with torch.no_grad():
        shared = network.unstable_features(x).sum(1)
    assert shared.abs().max() < 1e-5
    torch.testing.assert_close(said(), before, atol=1e-5, rtol=0)


@pytest.mark.long
def test_with_three_domains_each_is_left_out_and_the_worse_of_two_risks_decides():
    X, y, d = _training(_table, 200, agreements=(0.95, 0.8, 0.3))
    model = SFBClassifier(plan=Plan(budget=4)).fit(X, y, sample_domain=d)
    chosen, rivals = model.search_[0], model.search_[1:3]
    assert chosen["candidate"] == "narrow, steady"
    assert min(line["risk"] for line in rivals) < chosen["risk"]  # the guess alone would mislead
    assert max(chosen["risk"], chosen["risk_left_out"]) < min(
        max(line["risk"], line["risk_left_out"]) for line in rivals
    )
    for agreement in (0.9, 0.1):
        X_new, y_new = _table(agreement, 800, np.random.default_rng(7))
        assert model.score(X_new, y_new) > 0.69


def test_a_head_on_steady_features_reads_no_feature_that_drifts(brief):
    X, y, d = _training(_table, 300, agreements=(0.95, 0.3))
    codes = np.unique(d, return_inverse=True)[1]
    rows = members.Members(torch.from_numpy(X), y, codes, goal=Goal(), network="linear", seed=0)
    candidate = Candidate(network="linear", steady=True)
    network = rows.build(candidate, 0)
    rows.learn_stable(network, 0, candidate, y, np.ones(len(y)))
    assert network.trunk[-1].kept.tolist() == [1.0, 0.0, 1.0]
    with torch.no_grad():
        moved = torch.from_numpy(X + np.array([0.0, 9.0, 0.0]))
        same = [network.stable_logits(network.stable_features(x)) for x in (torch.from_numpy(X), moved)]
    assert torch.equal(*same)


def test_a_frozen_trunk_keeps_its_weights():
    trunk = nn.Linear(3, 8)
    X, y, d = _training(_table, 60)
    rows = members.Members(
        torch.from_numpy(X).float(), y, np.unique(d, return_inverse=True)[1], Goal(), trunk, 0
    )
    frozen = next(c for c in variants(Candidate(network="own"), "own", (3,), Goal()) if c.frozen)
    network = rows.build(frozen, 0)
    head = network.stable_head.weight.detach().clone()
    rows.learn_stable(network, 0, frozen, y, np.ones(len(y)))
    assert torch.equal(network.trunk[1].module.weight, trunk.weight)
    assert not torch.equal(network.stable_head.weight, head)


def test_two_domains_leave_none_out(table):
    assert {line["risk_left_out"] for line in table.search_} == {None}


def test_a_second_guess_is_right_about_as_often_and_about_as_unequally_often_as_the_first():
    y, domain = np.tile([0, 1], 500), np.repeat([0, 1], 500)
    wrong_each = {"first": (10, 5), "as good": (9, 5), "as often": (8, 8), "something else": (3, 2)}
    said = {
        name: np.where(np.arange(1000) % np.repeat(every, 500) < 2, 1 - y, y)
        for name, every in wrong_each.items()
    }
    search = Search.__new__(Search)
    search.members, search.guess = SimpleNamespace(y=y, domain=domain), said["first"]
    assert search._difference(said["something else"]) > search._difference(said["first"])  # unequal alone
    good = {name: search._as_good(guess) for name, guess in said.items()}
    assert good == {"first": True, "as good": True, "as often": False, "something else": False}


def test_the_second_guess_is_made_beside_the_view_that_is_best_where_its_own_guess_says_nothing():
    """One view lacks a stable column that the first guess read, one reads the unstable part, one is right."""
    n, rng = 4000, np.random.default_rng(0)
    y, domain = rng.integers(0, 2, n), np.repeat([0, 1], n // 2)
    colour = np.where(rng.random(n) < np.where(domain == 0, 0.95, 0.8), y, 1 - y)
    shape = np.where(rng.random(n) < 0.75, y, 1 - y)
    mixed = np.where(rng.random(n) < 0.2, shape, colour)  # a first guess that is a little about the shape
    dull = np.where(rng.random(n) < 0.65, y, 1 - y)

    def said(feature, right):
        return np.where(feature == y, -np.log(right), -np.log(1 - right))

    losses = {"lacks it": said(dull, 0.65), "reads colour": said(colour, 0.88), "right": said(shape, 0.75)}
    guesses = {"lacks it": mixed, "reads colour": colour, "right": colour}
    chosen = Search.__new__(Search)
    chosen.members, chosen.guess, chosen.few = _given(y, domain), mixed, [0]
    chosen.weight, chosen.progress = balancing_weights(y, mixed, domain), TrainingProgress(0, "search")
    chosen._guess_beside = lambda tried, folds: (guesses[tried.candidate.view], np.arange(n))
    tried = {name: search._Tried(Candidate(view=name), losses={0: values}) for name, values in losses.items()}
    scores = {name: chosen._score(one) for name, one in tried.items()}
    chance = chosen._chance(tried["right"])
    assert scores["lacks it"] < scores["right"] < chance < scores["reads colour"]
    assert chosen._best_beside(list(tried.values())).candidate.view == "right"
    assert chosen._best_beside([tried["reads colour"]]) is None


def _given(y, domain):
    """Rows of which all are held out, and nothing else."""
    every = np.arange(len(y))
    source = ArraySource(torch.zeros(len(y), 1), y, domain, 2, 2)
    return SimpleNamespace(
        y=y, domain=domain, source=lambda rows: source, folds=[SimpleNamespace(held=every)]
    )


def test_a_budget_that_nothing_is_searched_with_is_told(brief):
    X, y, d = _training(_table, 60)
    with pytest.warns(UserWarning, match=r"budget=3 is not used"):
        SFBClassifier("small", plan=Plan(steps=5, unstable_steps=5, min_gain=-9.0, budget=3)).fit(
            X, y, sample_domain=d
        )


def test_a_budget_beyond_all_candidates_is_no_other_search(brief):
    """Number of trainings, with a second guess if there is one."""
    X, y, d = _training(_images, 60)
    auto, many = (
        SFBClassifier(plan=Plan(budget=budget)).fit(X, y, sample_domain=d) for budget in ("auto", 1000)
    )
    np.testing.assert_array_equal(auto.predict_proba(X), many.predict_proba(X))
    assert [line["candidate"] for line in auto.search_] == [line["candidate"] for line in many.search_]


def test_a_search_leaves_the_random_states_of_the_program_alone(brief):
    X, y, d = _training(_images, 60)
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
    SFBClassifier(plan=Plan(budget=2)).fit(X, y, sample_domain=d)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)


def test_split_width_and_the_weight_of_the_penalty_are_searched_for_unless_they_are_named():
    def tried(network="auto", goal=None):
        made = variants(Candidate(view="grey"), network, (2, 8, 8), goal or Goal())
        assert {candidate.view for candidate in made} == {"grey"}
        assert len(set(made)) == len(made)
        return {
            "split": {candidate.split for candidate in made},
            "network": {candidate.network for candidate in made},
            "penalty": {(candidate.penalty, candidate.penalty_weight) for candidate in made},
        }

    every = tried()
    assert every["split"] == {"separate", "alternating", "shared"}
    assert every["network"] == {"narrow", "small", "mlp"}
    weights = {(name, weight) for name in ("irm", "vrex") for weight in (10.0, 100.0, 1000.0)}
    assert every["penalty"] == weights | {("none", 0.0)}
    assert tried(network="narrow")["network"] == {"narrow"}
    assert tried(goal=Goal(penalty_weight=7.0))["penalty"] == {("none", 0.0), ("irm", 7.0), ("vrex", 7.0)}
    assert tried(goal=Goal(penalty="none"))["penalty"] == {("none", 0.0)}


@pytest.mark.parametrize(
    "only",
    [
        Candidate(split="shared"),
        Candidate(split="alternating"),
        pytest.param(Candidate(network="mlp"), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_whatever_way_is_chosen_predicts_the_same_from_its_file_and_from_its_checkpoints(
    only, brief, tmp_path, monkeypatch
):
    monkeypatch.setattr(search, "first_candidates", lambda network, shape: [only])
    X, y, d = _training(_table, 60)
    plan = Plan(budget=1, checkpoint=tmp_path / "run")
    model = SFBClassifier(plan=plan).fit(X, y, sample_domain=d)
    assert model.search_[0]["candidate"] == str(only)
    model.save(tmp_path / "found.sfb")
    again = SFBClassifier(plan=plan).fit(X, y, sample_domain=d)  # every training is there already
    fresh = SFBClassifier(plan=Plan(budget=1)).fit(X, y, sample_domain=d)
    for other in (sfboost.load(tmp_path / "found.sfb"), again, fresh):
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(other.transform(X)[1], model.transform(X)[1])


def _members(goal, n=300):
    X, y, d = _training(_table, n)
    rows, codes = torch.from_numpy(X).float(), np.unique(d, return_inverse=True)[1]
    return members.Members(rows, y, codes, goal=goal, network="auto", seed=0)


def test_in_turns_the_stable_part_becomes_independent_of_the_unstable_one_within_a_class():
    rows, shown = _members(Goal(independence_weight=100.0)), {}
    column = rows.x[:, 1].numpy()
    guess = (column > 0).astype(int)
    weight = balancing_weights(rows.y, guess, rows.domain)
    for split in ("separate", "alternating"):
        candidate = Candidate(split=split)  # all rows as they are: f_S begins with column 1
        network = rows.build(candidate, 0)
        rows.learn_stable(network, 0, candidate, guess, weight)
        with torch.no_grad():
            logits = network.stable_logits(network.stable_features(rows.x))[:, 1].numpy()
        shown[split] = np.mean([np.cov(logits[rows.y == k], column[rows.y == k])[0, 1] for k in (0, 1)])
    assert abs(shown["alternating"]) < 0.5 * shown["separate"]


def test_in_a_shared_trunk_the_stable_part_reads_the_first_half_of_the_features():
    rows, candidate = _members(Goal()), Candidate(split="shared")
    network = rows.build(candidate, 0)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    history = rows.learn_stable(network, 0, candidate, rows.y, np.ones(len(rows.y)))
    assert {row["stage"] for row in history} == {"joint"}
    assert all(row["joint"] > 0 for row in history)
    moved = {name for name, value in network.state_dict().items() if not torch.equal(value, before[name])}
    assert {name.split(".")[0] for name in moved} == {"trunk", "stable_head"}  # Φ_U is learned afterwards
    assert network.stable_features(rows.x[:3]).shape == (3, 50)


def test_views_that_hide_the_same_are_tried_once():
    rows = _members(Goal())
    rows.find_views((rows.x[:, 1] > 0).int().numpy())
    assert [rows.offers(view) for view in ("columns", "steady", "apart")] == [True, False, False]
    assert all(found["columns"]["kept"].tolist() == [True, False, True] for found in rows.found)


def test_a_candidate_that_diverges_is_out_and_the_others_go_on(brief, monkeypatch):
    learn = members.Members.learn_stable

    def diverging(self, network, k, candidate, guess, weight):
        if candidate.view == "columns":
            raise trainer.TrainingDivergedError("the loss is not finite")
        return learn(self, network, k, candidate, guess, weight)

    monkeypatch.setattr(members.Members, "learn_stable", diverging)
    X, y, d = _training(_table, 60)
    model = SFBClassifier(plan=Plan(budget=2)).fit(X, y, sample_domain=d)
    assert len(model.search_) == 2
    assert not any("columns" in line["candidate"] for line in model.search_)


def test_after_turns_the_unstable_part_begins_as_in_any_other_split():
    rows, candidate = _members(Goal(), 60), Candidate(split="alternating")
    network = rows.build(candidate, 0)
    before = {name: part.clone() for name, part in network.state_dict().items() if "unstable" in name}
    history = rows.learn_stable(network, 0, candidate, rows.y, np.ones(len(rows.y)))
    assert list(dict.fromkeys(row["stage"] for row in history)) == ["stable", "beside", "again"]
    for name, part in before.items():
        assert torch.equal(network.state_dict()[name], part)
