"""What `sfboost evaluate` says of all own domains together."""

import pytest

from sfboost.boosting import METRICS, DomainEvaluation, DomainScores
from sfboost.boosting.scored_domains import COMPARED
from sfboost.cli.evaluate import _words


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


@pytest.mark.parametrize(
    ("best", "said"),
    [
        (("boosted", "boosted", "stable", None), "; it was 'boosted' in 2 of 4."),
        (("boosted", "stable", None), "10.0 at most."),
        ((None, None), "0.0 at most."),
    ],
)
def test_the_candidate_that_would_have_been_better_is_named_where_it_is_one(best, said):
    assert str(_words(evaluation(best))[-1]).endswith(said)


def test_where_a_class_is_rare_the_means_of_other_scores_are_told():
    told = str(_words(evaluation((None, None), (0.9, 0.1)))[-1])
    assert "balanced accuracy stable 50.0 %, answer 50.0 %, pooled 50.0 %" in told
    assert "AUROC stable 0.500, answer 0.500, pooled 0.500" in told
    assert "rare" not in str(_words(evaluation((None, None)))[-1])
    assert "rare" not in str(_words(evaluation((None, None), (0.9, 0.1), "auroc"))[-1])
