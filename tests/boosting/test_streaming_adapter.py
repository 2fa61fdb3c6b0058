"""Rows that arrive over time: learned, forgotten, watched; what is promised of order and repetition."""

import numpy as np
import pytest
from scipy.integrate import quad

from sfboost import Settings, StableFeatureBoosting, StreamingAdapter
from sfboost.boosting.streaming_adapter import evidence


def draw(n_rows, slope, rng):
    y = rng.integers(0, 2, n_rows)
    sign = (2 * y - 1)[:, None]
    stable, unstable = (rng.normal(size=(n_rows, 2)) + size * sign for size in (0.9, slope))
    return np.hstack([stable, unstable]), y


@pytest.fixture(scope="module")
def start():
    rng = np.random.default_rng(0)
    X, y = draw(2000, 0.5, rng)
    model = StableFeatureBoosting([0, 1]).fit(X, y, sample_domain=np.repeat(["a", "b"], 1000))
    return model.adapt(draw(800, 1.0, rng)[0], leak=0.0)


def test_batches_teach_what_all_rows_teach(start):
    rng = np.random.default_rng(1)
    batches = [draw(300, 1.0, rng)[0] for _ in range(10)]
    stream = StreamingAdapter(start)
    kinds = {stream.update(batch).kind for batch in batches}
    assert kinds == {"learned"}
    whole = start.model.adapt(np.vstack([draw(800, 1.0, np.random.default_rng(0))[0], *batches]), leak=0.0)
    X = batches[0]
    assert np.abs(stream.predict_proba(X) - whole.predict_proba(X)).mean() < 0.02


def test_a_change_before_the_first_batch_is_seen(start):
    rng = np.random.default_rng(2)
    assert StreamingAdapter(start).update(draw(200, -1.0, rng)[0]).kind == "alarm"


def first_lots(n_streams, heavy, rare, slope):
    """What first lots did, and their p-values: tails of Student's t with three degrees, or 5 % positives."""
    rng = np.random.default_rng(5)

    def rows(n_rows, slope):
        sign = np.where(rng.random(n_rows) < (0.05 if rare else 0.5), 1.0, -1.0)[:, None]
        noise = rng.standard_t(3, size=(n_rows, 2)) if heavy else rng.normal(size=(n_rows, 2))
        return np.hstack([rng.normal(size=(n_rows, 2)) + 0.9 * sign, noise + slope * sign]), sign[:, 0]

    X, y = rows(2000, 0.5)
    model = StableFeatureBoosting([0, 1], play=False).fit(X, y, sample_domain=np.repeat(["a", "b"], 1000))
    found = []
    for _ in range(n_streams):
        stream = StreamingAdapter(model.adapt(rows(1500, 1.0)[0], answer="paper"))
        event = stream.update(rows(400 if rare else 200, slope)[0])
        found.append((event.kind, event.p_value))
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("heavy", "rare"), [(True, False), (False, True)], ids=["heavy tails", "five percent"]
)
def test_a_first_lot_as_ever_is_no_alarm_whatever_its_tails(heavy, rare):
    """A score test took the mean of a lot for normal: 8 to 10 % had p < 0.001 with heavy tails."""
    found = first_lots(25, heavy, rare, slope=1.0)
    assert all(kind == "learned" for kind, _ in found)
    assert np.mean([p < 0.05 for _, p in found]) <= 0.2
    assert all(kind == "alarm" for kind, _ in first_lots(4, heavy, False, slope=-1.0))


def test_a_reversal_raises_an_alarm_and_the_old_head_answers_until_the_new_one_is_credible(start):
    rng = np.random.default_rng(3)
    stream = StreamingAdapter(start, half_life=5000)
    for _ in range(3):
        stream.update(draw(300, 1.0, rng)[0])
    X, y = draw(2000, -1.0, rng)
    kinds, scores = [], []
    for _ in range(12):
        kinds.append(stream.update(draw(300, -1.0, rng)[0]).kind)
        scores.append(np.mean(stream.predict(X) == y))
    assert "alarm" in kinds[:4]
    assert "switched" in kinds
    switch = kinds.index("switched")
    assert max(scores[:switch]) < 0.8 < scores[switch]


def test_an_alarm_that_was_false_is_taken_back(start):
    rng = np.random.default_rng(4)
    stream = StreamingAdapter(start)
    stream.update(draw(60, 1.0, rng)[0])
    stream._detector = 1e9  # as if it had been reached by chance
    kinds = [stream.update(draw(60, 1.0, rng)[0]).kind for _ in range(40)]
    assert kinds[0] == "alarm"
    end = next(kind for kind in kinds if kind in ("back", "switched"))
    assert end == "back"


def test_a_batch_that_comes_again_is_left_out_and_a_late_one_counts_less(start):
    X = draw(300, 1.5, np.random.default_rng(5))[0]
    once, twice = StreamingAdapter(start, half_life=1000), StreamingAdapter(start, half_life=1000)
    once.update(X, name="monday")
    twice.update(X, name="monday")
    assert twice.update(X, name="monday").kind == "repeated"
    np.testing.assert_array_equal(once.predict_proba(X), twice.predict_proba(X))
    late, later = StreamingAdapter(start, half_life=1000), StreamingAdapter(start, half_life=1000)
    assert late.update(X, age=500).kind == "late"
    later.update(X, age=20_000)
    before = start.predict_proba(X)
    moved = [np.abs(stream.predict_proba(X) - before).mean() for stream in (late, later)]
    assert moved[1] < 0.1 * moved[0]


@pytest.mark.parametrize("age", [-1.0, float("nan")])
def test_an_age_that_cannot_be_is_refused(start, age):
    stream = StreamingAdapter(start)
    with pytest.raises(ValueError, match="makes no sense"):
        stream.update(draw(50, 1.0, np.random.default_rng(3))[0], age=age)
    assert stream.n_batches == 0


def test_a_model_that_is_not_adapted_is_told_what_to_do(start):
    with pytest.raises(TypeError, match="Got a StableFeatureBoosting: pass what its `adapt` returns"):
        StreamingAdapter(start.model)


def test_update_gives_a_classifier_that_knows_more_and_leaves_the_first_as_it_was(start):
    rng = np.random.default_rng(8)
    batches = [draw(300, 1.0, rng)[0] for _ in range(2)]
    before = start.predict_proba(batches[0])
    once = start.update(batches[0], name="monday")
    twice = once.update(batches[1])
    assert once.update(batches[0], name="monday").event_.kind == "repeated"
    assert [made.event_.kind for made in (once, twice)] == ["learned", "learned"]
    stream = StreamingAdapter(start)
    for batch in batches:
        stream.update(batch)
    np.testing.assert_array_equal(twice.predict_proba(batches[0]), stream.predict_proba(batches[0]))
    np.testing.assert_array_equal(start.predict_proba(batches[0]), before)
    other = once.update(draw(300, -1.0, rng)[0])
    assert (other.event_.kind, once.event_.kind) == ("alarm", "learned")


def test_a_best_answer_stays_chosen_until_a_change_is_believed(start):
    rng = np.random.default_rng(9)
    best = start.model.adapt(draw(800, 0.5, rng)[0])
    assert best.decision_ == "pooled"
    X = draw(300, 0.5, rng)[0]
    np.testing.assert_array_equal(best.update(X).predict_proba(X), best.predict_proba(X))
    after = best
    for _ in range(12):
        after = after.update(draw(300, -1.0, rng)[0])
        if after.event_.kind == "switched":
            break
    assert after.decision_ == "adapted"


def test_the_order_of_rows_in_a_batch_does_not_matter_and_what_was_handed_out_stays(start):
    rng = np.random.default_rng(6)
    X = draw(400, 1.0, rng)[0]
    here, there = StreamingAdapter(start), StreamingAdapter(start)
    here.update(X)
    there.update(X[rng.permutation(len(X))])
    np.testing.assert_allclose(here.predict_proba(X), there.predict_proba(X), atol=1e-9)
    handed = here.adapted
    before = handed.predict_proba(X)
    here.update(draw(400, -1.0, rng)[0])
    np.testing.assert_array_equal(handed.predict_proba(X), before)


def held(thing):
    """Bytes of all arrays that an object holds, directly or not."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, tuple | list):
        return sum(map(held, thing))
    return sum(map(held, vars(thing).values())) if hasattr(thing, "__dict__") else 0


def test_what_is_kept_does_not_grow(start):
    rng = np.random.default_rng(10)
    stream, sizes = StreamingAdapter(start, half_life=2000), []
    for number in range(60):
        stream.update(draw(100, 1.0 if number < 30 else -1.0, rng)[0])
        sizes.append(held(stream))
    assert max(sizes[40:]) <= max(sizes[12:25])


def test_an_e_value_of_chance_is_one_on_average():
    # With p = e^-t; beyond t = 600 lies one part in 600.
    whole, _ = quad(lambda t: evidence(np.exp(-t)) * np.exp(-t), 0.0, 600.0, limit=500)
    assert whole == pytest.approx(1.0, abs=3e-3)


def test_a_kept_stable_predictor_cannot_be_updated(start):
    few = draw(20, 1.0, np.random.default_rng(7))[0]
    with pytest.warns(UserWarning, match="kept"):
        kept = start.model.adapt(few, leak=0.0)
    with pytest.raises(ValueError, match="adapt to more rows first"):
        StreamingAdapter(kept)


def test_what_label_shift_learned_cannot_be_updated(start):
    rng = np.random.default_rng(0)
    X, y = draw(600, 0.5, rng)
    model = StableFeatureBoosting([0, 1], transport="likelihood", play=False)
    model.fit(X, y, sample_domain=np.repeat(["a", "b"], 300))
    shifted = model.adapt(draw(800, 1.0, rng)[0], answer="checked")
    with pytest.raises(ValueError, match='Only transport="posterior"'):
        shifted.update(X)


def test_a_network_is_updated_too():
    pytest.importorskip("torch", reason="needs the torch extra")
    from sfboost.torch import Plan, SFBClassifier

    X, y = draw(400, 1.0, np.random.default_rng(0))
    plan = Plan(steps=5, unstable_steps=5, min_gain=-9.0)
    model = SFBClassifier("small", plan=plan).fit(X, y, sample_domain=np.repeat(["a", "b"], 200))
    adapted = model.adapt(X, answer="paper", settings=Settings())
    later = adapted.update(X[:200])
    assert later.event_.kind == "learned"
    assert np.abs(later.predict_proba(X) - adapted.predict_proba(X)).max() > 0.0
