"""The paper by one command: runs, records, engines, rules of choice, tables.

Layering, lowest first: `run` · `record`, `origin` · `store`, `cache` · `grouped_runs` · `engines` · `sweep` ·
`canary` · `rules` · `paper` · `tables` · `rendering`, `figures`, `experiment` · `measured_domains` ·
`methods` · `measuring` · the experiments, one file each · `registry` · `committed`, `page`.
"""

from __future__ import annotations

from sfboost_lab.experiments.grouped_runs import Group, Session
from sfboost_lab.experiments.record import Measured, Record
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.store import Store, read_records, write_records
from sfboost_lab.experiments.sweep import sweep

__all__ = ["Group", "Measured", "Record", "Run", "Session", "Store", "read_records", "sweep", "write_records"]
