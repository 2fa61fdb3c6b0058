"""The paper by one command: runs, records, engines, rules of choice, tables.

Layering, lowest first: `run` · `record`, `origin` · `store`, `cache` · `work` · `engines` · `sweep` ·
`canary` · `rules` · `paper` · `tables` · `rendering`, `figures`, `experiment` · `ablated`, `places` ·
`methods` · `measuring` · the experiments, one file each · `registry` · `committed`, `page`.
"""

from __future__ import annotations

from sfboost.experiments.record import Measured, Record
from sfboost.experiments.run import Run
from sfboost.experiments.store import Store, read_records, write_records
from sfboost.experiments.sweep import sweep
from sfboost.experiments.work import Group, Session

__all__ = ["Group", "Measured", "Record", "Run", "Session", "Store", "read_records", "sweep", "write_records"]
