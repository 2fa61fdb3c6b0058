"""What `sfboost evaluate` says of all source domains together."""

from dataclasses import replace

from hospitals import ROLES, training

from sfboost.boosting import METRICS, DomainEvaluation, DomainScores
from sfboost.boosting.scored_domains import COMPARED
from sfboost.cli.evaluate import _words as words


def evaluation(best, shares=(0.5, 0.5), metric="accuracy"):
    """One domain for each of `best`, whose candidate of that name is ahead; None: none is."""
    scores = {method: dict.fromkeys(METRICS, 0.5) for method in COMPARED}
    return DomainEvaluation(
        tuple(
            DomainScores(
                *(f"d{i}", 100, "pooled", "", scores, 0.5),
                {"pooled": 0.5} | ({name: 0.6} if name else {}),
                shares,
                metric,
            )
            for i, name in enumerate(best)
        )
    )


def test_where_a_class_is_rare_another_metric_is_named():
    assert "A class is rare" in str(words(evaluation((None, None), (0.9, 0.1)))[-1])
    assert "rare" not in str(words(evaluation((None, None)))[-1])
    assert "rare" not in str(words(evaluation((None, None), (0.9, 0.1), "auroc"))[-1])


def test_a_loss_that_falls_is_told_with_a_minus():
    (one,) = evaluation((None,), metric="log_loss").domains
    scores = one.scores | {"answer": dict.fromkeys(METRICS, 0.4)}
    told = str(words(DomainEvaluation((replace(one, scores=scores),))))
    assert told.count("-0.100 against") == 2


def decided(decision, reasons, score=0.5):
    """Domains that were all decided alike, each for its reason."""
    (one,) = evaluation((None,)).domains
    one = replace(one, scores={method: dict.fromkeys(METRICS, score) for method in COMPARED})
    return [
        replace(one, domain=f"{decision} {i}", decision=decision, reason=why) for i, why in enumerate(reasons)
    ]


def test_domains_that_were_skipped_for_one_reason_are_told_in_one_sentence():
    few = [f"{n} rows are too few to adapt to and to score" for n in range(40)]
    lines = words(DomainEvaluation((*evaluation((None,)).domains, *decided("skipped", few))))
    (told,) = (line for line in lines if "too few" in str(line))
    assert told == (
        "40 domains were skipped (skipped 0, skipped 1, skipped 2, skipped 3, skipped 4 and 35 more); "
        "skipped 0: 0 rows are too few to adapt to and to score"
    )
    # A row for the domain that was scored, in both tables.
    assert sum(str(line).startswith("d0 ") for line in lines) == 2
    assert not any(str(line).startswith("skipped") for line in lines)


def test_of_many_domains_the_worst_is_named_and_names_are_whole():
    every = [
        replace(one, domain=f"District of Columbia {i}")
        for i, one in enumerate(evaluation([None] * 11).domains)
    ]
    scores = every[7].scores | {"answer": dict.fromkeys(METRICS, 0.25)}
    every[7] = replace(every[7], scores=scores)
    lines = words(DomainEvaluation(tuple(every)))
    assert lines[8].startswith("District of Columbia 7       50.0      25.0")
    told = next(str(line) for line in lines if "The answer changes" in str(line))
    assert told.count("(-25.0 at worst, District of Columbia 7)") == 2


def test_json_has_the_domains_that_were_skipped(sfboost, tmp_path):
    frame = training(60)
    frame.loc[frame.index[:4], "hospital"] = "tiny"
    frame.to_csv(tmp_path / "train.csv", index=False)
    records = sfboost.json("evaluate", tmp_path / "train.csv", *ROLES)["domains"]
    skipped = {record["domain"]: record["decision"] == "skipped" for record in records}
    assert skipped == {"tiny": True, "north": False, "south": False, "east": False}
