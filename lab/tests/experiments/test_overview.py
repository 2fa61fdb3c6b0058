"""What a reproduction says in one line, and which figure is the best."""

import math

from sfboost_lab.experiments.overview import best_of, in_one_line
from sfboost_lab.experiments.paper import PaperValue
from sfboost_lab.experiments.tables import Cell, Row, Table, Target

PAPER = PaperValue(80.0, 0.5, "se", 10)


def table(*rows):
    return Table("T", ("AC", "CE"), rows)


def test_the_line_counts_what_is_near_the_paper_and_names_what_is_farthest():
    near, far = Cell((79.9, 80.3), PAPER), Cell((70.0, 70.2), PAPER)
    line = in_one_line([table((Row("ERM", "erm"), (near, far)), (Row("IRM", "irm"), (near, near)))])
    assert line == "3 of 4 within two standard errors of the paper; farthest -9.9 (ERM, CE)"


def test_the_line_counts_targets_in_both_directions():
    cells = (Cell((90.0,), target=Target(89.0)), Cell((6.0,), target=Target(5.0, at_least=False)))
    line = in_one_line([table((Row("ours", "erm"), cells))])
    assert line == "1 of 2 targets reached; the farthest is 1.0 short (ours, CE)"


def test_without_a_paper_and_targets_there_is_nothing_to_compare_with():
    assert in_one_line([table((Row("ERM", "erm"), (Cell((1.0,)), Cell(()))))]) == "nothing to compare with"


def test_an_oracle_is_never_the_best_and_where_less_is_better_none_is():
    aim = Target(5.0, at_least=False)
    made = table(
        (Row("ERM", "erm"), (Cell((70.0,)), Cell((3.0,), target=aim))),
        (Row("IRM", "irm"), (Cell((75.0,)), Cell((2.0,), target=aim))),
        (Row("Oracle", "erm", test_access="labelled"), (Cell((90.0,)), Cell((9.0,), target=aim))),
    )
    best = best_of(made)
    assert best[0] == 75.0
    assert math.isnan(best[1])
