"""A small experiment for the tests of the command: five seeds of ten milliseconds each."""

from engine_runs import make_runs

from sfboost_lab.experiments import Group
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.paper import paper_table
from sfboost_lab.experiments.rendering import draw_dots
from sfboost_lab.experiments.tables import Row, TableColumn, make_table

FUNCTION = "ordinary"


def plan(seeds, quick):
    protocol = EXPERIMENT.protocols[quick]
    return [Group(f"engine_runs:{FUNCTION}", (run,)) for run in make_runs(seeds, protocol=protocol)]


def tables(records):
    rows = [Row("ERM", "erm", paper="ERM"), Row("Oracle", "erm", test_access="labelled")]
    return [make_table("Small", rows, [TableColumn("AC", "ac", "test")], records, paper_table("synthetic"))]


def figure(records, path):
    return draw_dots(tables(records)[0], path)


EXPERIMENT = Experiment("small", "five seeds", 5, 2, plan, tables, figure)
