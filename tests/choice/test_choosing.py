"""Which answer is chosen: by the test, by own domains, by labels."""

from dataclasses import replace

import numpy as np
import pytest
from sfboost.choice.play import AS_IS, Case

from sfboost.choice.choosing import choose, with_labels
from sfboost.shift import Change, FeatureChange

MIRRORED, SHUFFLED = (-1.0, -1.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0)
NAMES = ["stable", "pooled", "boosted", "mended", "dropped"]


def case(domain, kind, signature, **log_loss):
    losses = {"stable": 0.5, "pooled": 0.5, "boosted": 0.5, "mended": 0.5, "dropped": 0.5} | log_loss
    return Case(domain, kind, signature, 0.5, 100, losses)


def change(p_value, verdict=None, signature=MIRRORED, power=5.0):
    feature = FeatureChange("u", (0,), p_value, -1.0, 0.0, False, 1.0)
    verdict = verdict or ("changed" if p_value < 0.05 else "unchanged")
    changed = ("u",) if verdict == "changed" else ()
    own = {"a": 1.0, "b": 1.0, "c": 1.0}
    return Change(verdict, p_value, power, 0.05, -1.0, -1.0, own, (feature,), changed, ("u",), signature, 100)


@pytest.fixture
def cases():
    """Pooled is best as it is, mending where all is mirrored, the stable features where all is shuffled."""
    made = []
    for i, domain in enumerate("abcd"):
        noise = 0.01 * i
        made += [
            case(domain, AS_IS, (1.0, 1.0, 0.0, 0.1), pooled=0.3 + noise),
            case(domain, "all mirrored", MIRRORED, pooled=1.5, mended=0.32 + noise, boosted=0.4),
            case(domain, "all shuffled", SHUFFLED, pooled=0.9, mended=0.55 + noise, boosted=0.6),
        ]
    return tuple(made)


def test_nothing_changed_means_all_features_as_trained(cases):
    chosen = choose(change(0.5), cases, NAMES, "logistic regression")
    assert chosen.weights == {"pooled": 1.0}
    assert chosen.decision == "pooled"
    assert "Nothing changed" in chosen.reason
    assert "logistic regression" in chosen.reason


def test_a_change_is_answered_as_own_domains_changed_alike_recommend(cases):
    mirrored = choose(change(1e-6), cases, NAMES)
    assert mirrored.weights == {"mended": 1.0}
    assert mirrored.decision == "adapted"
    shuffled = choose(change(1e-6, signature=SHUFFLED), cases, NAMES)
    assert shuffled.weights == {"stable": 1.0}
    assert shuffled.decision == "kept stable"
    assert "no other answer beats" in shuffled.reason


def test_weights_move_with_the_p_value_and_do_not_jump(cases):
    p_values = np.geomspace(0.5, 0.01, 400)
    weights = [choose(change(p), cases, NAMES).weights.get("mended", 0.0) for p in p_values]
    assert weights[0] == 0.0
    assert weights[-1] == 1.0
    assert (np.diff(weights) >= 0.0).all()
    assert np.diff(weights).max() < 0.1
    middle = choose(change(0.2), cases, NAMES)
    assert middle.decision == "blended"
    assert sum(middle.weights.values()) == pytest.approx(1.0)


def test_an_answer_that_costs_nothing_where_nothing_changed_needs_less_evidence(cases):
    cheap = [replace(c, loss=c.loss | {"mended": 0.31}) if c.kind == AS_IS else c for c in cases]
    doubtful = change(0.2)
    assert choose(doubtful, cheap, NAMES).weights["mended"] > choose(doubtful, cases, NAMES).weights["mended"]


def test_what_is_believed_to_be_lost_on_the_new_rows_is_at_stake_too(cases):
    """Own domains may know no change that hurt as much as this one does."""
    doubtful = change(0.2, signature=SHUFFLED)
    harmless = [replace(c, loss=c.loss | {"pooled": 0.5}) if c.kind != AS_IS else c for c in cases]
    assert choose(doubtful, harmless, NAMES).weights == {"pooled": 1.0}
    told = []

    def believed_loss(answer, other):
        told.append((answer, other))
        return 2.0

    after = choose(doubtful, harmless, NAMES, believed_loss=believed_loss)
    assert told == [("stable", "pooled")]
    assert after.weights["stable"] > 0.7


def test_another_answer_than_pooled_needs_domains_that_clearly_prefer_it():
    def as_they_are(domains, spread):
        return [
            case(d, AS_IS, MIRRORED, pooled=0.5, boosted=0.45 + spread * (i % 2))
            for i, d in enumerate(domains)
        ]

    quiet = change(0.6)
    assert choose(quiet, as_they_are("abcd", 0.01), NAMES).weights == {"boosted": 1.0}
    assert choose(quiet, as_they_are("ab", 0.02), NAMES).weights == {"pooled": 1.0}
    assert choose(quiet, as_they_are("ab", 0.01), NAMES).weights == {"boosted": 1.0}
    assert choose(quiet, as_they_are("a", 0.0), NAMES).weights == {"pooled": 1.0}
    assert choose(quiet, as_they_are("abcd", 0.2), NAMES).weights == {"pooled": 1.0}


def test_a_gain_within_its_error_is_no_gain():
    cases = [
        case(d, "all mirrored", MIRRORED, mended=0.5 + step)
        for d, step in zip("abcd", (-0.3, 0.25, -0.2, 0.2), strict=True)
    ]
    assert choose(change(1e-6), cases, NAMES).weights == {"stable": 1.0}


@pytest.mark.parametrize("signature", [MIRRORED, SHUFFLED])
def test_rows_that_cannot_tell_are_answered_by_their_p_value_as_others_are(cases, signature):
    """What they look like is mostly chance: it decides nothing where nothing speaks for a change."""
    for p_value in (1.0, 0.5, 0.3, 0.1):
        told = choose(change(p_value, "unchanged", signature), cases, NAMES)
        untold = choose(change(p_value, "cannot tell", signature, power=1.1), cases, NAMES)
        assert untold.weights == told.weights
        assert untold.reason != told.reason
    assert choose(change(0.5, "cannot tell", signature, power=1.1), cases, NAMES).weights == {"pooled": 1.0}


def test_rows_that_cannot_tell_say_whether_anything_speaks_for_a_change(cases):
    helps = "To tell, more rows, more training domains or a stable predictor that says more would help."
    quiet, perhaps = (choose(change(p, "cannot tell", power=1.1), cases, NAMES).reason for p in (0.5, 0.2))
    why = "Cannot tell whether a meaning changed (the evidence to expect is 1.1 times its error, 2 is needed)"
    assert quiet == f"{why}, and nothing speaks for it. The answer is all features as trained. {helps}"
    assert perhaps.startswith(
        f"{why}, but something speaks for it (p = 0.200), in 'u'. The answer is mixed: "
    )
    assert perhaps.endswith(helps)


def test_labels_weigh_the_answers_and_rule_none_out(cases):
    chosen = choose(change(0.5), cases, NAMES)
    fits = dict.fromkeys(NAMES, -60.0) | {"mended": -20.0}
    after = with_labels(chosen, fits, 80, 1000)
    assert after.weights["mended"] > 0.99
    few = with_labels(chosen, dict.fromkeys(NAMES, -1.0), 2, 1000)
    assert few.weights["pooled"] > 0.9
    assert with_labels(chosen, fits, 1000, 1000).weights == {"boosted": 1.0}


def test_the_words_are_no_stronger_than_the_evidence(cases):
    def reason(p_value):
        return choose(change(p_value), cases, NAMES).reason

    assert reason(1e-6).startswith(
        "Changed: 'u' means something else than in your own 3 domains (p < 0.001)."
    )
    assert reason(0.04).startswith(
        "Probably changed: 'u' means something else than in your own 3 domains (p = 0.040)."
    )
    assert reason(0.3).startswith(
        "A change is neither shown nor ruled out (p = 0.300); if there is one, it is in 'u'."
    )
    assert reason(0.5).startswith("Nothing changed: ")


def test_a_blend_names_its_largest_part_first(cases):
    words = {
        "pooled": "all features as trained",
        "mended": "all features as trained, the suspected ones put back to what they meant",
    }
    for p_value, largest, other in ((0.3, "pooled", "mended"), (0.1, "mended", "pooled")):
        chosen = choose(change(p_value), cases, NAMES)
        large, small = (round(100 * chosen.weights[name]) for name in (largest, other))
        assert large > small
        assert chosen.reason.endswith(
            f"The answer is mixed: {words[largest]} ({large} %); {words[other]} ({small} %)."
        )


def test_a_blend_that_is_nearly_one_answer_goes_by_its_name(cases):
    chosen = choose(change(0.5), cases, NAMES)
    fits = dict.fromkeys(NAMES, -2.0)
    after = with_labels(chosen, fits | {"boosted": -1.5}, 20, 1000)
    assert 0.95 < after.weights["pooled"] < 1.0
    assert after.decision == "pooled"
    assert (
        "With 20 labels the answer is all features as trained (98 %), with a little of the unstable features "
        "learned anew (SFB) (2 %)."
    ) in after.reason
    more = with_labels(chosen, fits | {"boosted": -1.5, "stable": -1.5}, 20, 1000)
    assert "all features as trained (97 %), with a little of 2 others." in more.reason
    doubted = with_labels(chosen, fits | {"mended": 2.0}, 20, 1000)
    assert doubted.decision == "blended"
    sure = with_labels(chosen, fits | {"stable": 7.0}, 20, 1000)
    assert 0.95 < sure.weights["stable"] < 1.0
    assert sure.decision == "kept stable"


def test_what_nobody_can_tell_is_not_called_changed(cases):
    chosen = choose(change(0.2, "cannot tell", MIRRORED, power=1.1), cases, NAMES)
    assert "the suspected ones put back" in chosen.reason
    assert "the evidence to expect is 1.1 times its error, 2 is needed" in chosen.reason
    assert "the changed" not in chosen.reason


def test_a_change_that_is_not_worth_an_answer_is_not_called_answered(cases):
    """Shown, but what would answer it is dear where nothing changed and gains next to nothing."""
    dear = [
        replace(c, loss=c.loss | ({"mended": 9.0} if c.kind == AS_IS else {"pooled": 0.33, "mended": 0.32}))
        for c in cases
    ]
    chosen = choose(change(0.04), dear, NAMES)
    assert chosen.weights == {"pooled": 1.0}
    assert (
        "The answer is all features as trained: on your own domains others would cost more" in chosen.reason
    )


def test_the_reason_says_what_labels_did(cases):
    chosen = choose(change(0.5), cases, NAMES)

    def said(n_labelled, random=True, **fits):
        return with_labels(chosen, dict.fromkeys(NAMES, -60.0) | fits, n_labelled, 1000, random).reason

    before, found = (
        chosen.reason,
        "Nothing changed: the unstable features speak as in your own 3 domains (p = 0.500).",
    )
    right = " They also put right how sure it is, and how frequent it takes each class to be."
    assert said(80, mended=-20.0) == (
        f"{found} With 80 labels the answer is all features as trained, the changed ones put back to what "
        f"they meant.{right}"
    )
    assert said(80, pooled=-20.0) == f"{before} With 80 labels the answer stays the same.{right}"
    assert "The labelled rows are unlike the others" in said(80, random=False, pooled=-20.0)
    assert said(80, boosted=900.0).endswith("the unstable features learned anew (SFB).")
    assert said(1, mended=-57.0).startswith(
        f"{found} With 1 label the answer is mixed: all features as trained ("
    )


def test_after_labels_the_reason_states_one_answer(cases):
    for p_value, verdict in ((1e-6, None), (0.2, None), (0.5, None), (0.2, "cannot tell")):
        chosen = choose(change(p_value, verdict), cases, NAMES)
        fits = dict.fromkeys(NAMES, -60.0) | {"stable": -20.0}
        reason = with_labels(chosen, fits, 80, 1000).reason
        assert reason.startswith(f"{chosen.found} With 80 labels the answer is the stable features alone.")
        assert chosen.reason.startswith(chosen.found)
        assert reason.count("answer is") == 1


def several(*p_values, suspects=None):
    """A change in features "a", "b", ... of falling importance, by their own p-values."""
    parts = [
        FeatureChange(name, (k,), p, -1.0, 0.0, False, 1.0 / (1 + k))
        for k, (name, p) in enumerate(zip("abcdefgh", p_values, strict=False))
    ]
    names = tuple(suspects or (part.name for part in parts))
    return replace(change(1e-6), features=tuple(parts), changed=names, suspects=names)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (
            several(0.81, 1e-3, 1e-5),
            "'c', 'b' mean something else than in your own 3 domains (p < 0.001), and perhaps 1 more.",
        ),
        (
            several(1e-6, 1e-5, 1e-4),
            "'a', 'b', 'c' mean something else than in your own 3 domains (p < 0.001).",
        ),
        (several(1e-6, 1e-5, 1e-4, 1e-3), "'a', 'b', 'c' and 1 more mean something else than"),
        (
            several(0.9, 0.03, suspects="b"),
            "'b' means something else than in your own 3 domains (p < 0.001).",
        ),
        (several(0.9), "'a' means something else than in your own 3 domains (p < 0.001)."),
        (
            several(0.037, 0.5, 0.83, 0.5, 1.0, 0.5),
            "the unstable features together mean something else than in your own 3 domains (p < 0.001); "
            "which of them cannot be told.",
        ),
    ],
)
def test_the_features_that_show_a_change_by_themselves_are_named(cases, found, told):
    assert choose(found, cases, NAMES).reason.startswith(f"Changed: {told}")


def test_where_errors_have_a_price_own_domains_choose_by_it(cases):
    dear = {"stable": 0.8, "pooled": 2.0, "boosted": 0.3, "mended": 0.7, "dropped": 0.8}
    usual = dear | {"pooled": 0.2}
    priced = [replace(one, loss=usual if one.kind == AS_IS else dear, metric="cost") for one in cases]
    assert choose(change(1e-6), cases, NAMES).weights == {"mended": 1.0}
    chosen = choose(change(1e-6), priced, NAMES)
    assert chosen.weights == {"boosted": 1.0}
    assert "0.500 ± 0.000 in cost a row" in chosen.reason
    ranked = [replace(one, metric="auroc") for one in priced]
    assert "0.500 ± 0.000 in AUROC" in choose(change(1e-6), ranked, NAMES).reason


def test_a_domain_whose_losses_cannot_be_told_does_not_choose(cases):
    """The AUROC of rows of one class is unknown; the other domains decide as if it were not there."""
    unknown = dict.fromkeys(NAMES, float("nan"))
    some = [replace(one, loss=unknown) if one.domain == "a" else one for one in cases]
    rest = [one for one in cases if one.domain != "a"]
    for p_value in (1e-6, 0.1, 0.5):
        assert choose(change(p_value), some, NAMES) == choose(change(p_value), rest, NAMES)
