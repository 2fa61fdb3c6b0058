"""What is told beside the figures, so that nobody reads more into them than they say."""

import pytest

from sfboost.cli.outcome import _caution
from sfboost.diagnostics import Performance


def foretold(**accuracy):
    return {
        name: Performance(*[{"accuracy": value}] * 3, leak=0.0, level=0.9) for name, value in accuracy.items()
    }


@pytest.mark.parametrize(("stable", "answer", "told"), [(0.51, 0.44, 1), (0.835, 0.83, 0), (0.7, 0.9, 0)])
def test_stable_features_that_think_better_of_themselves_are_put_in_their_place(stable, answer, told):
    lines = _caution(foretold(stable=stable, answer=answer, pooled=answer))
    assert len(lines) == told
    assert all("your own domains say" in line for line in lines)
    assert _caution(None) == []
