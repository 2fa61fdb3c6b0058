"""The paper by one command: runs, records, engines, rules of choice, tables.

Layering, lowest first: `run`, `origin` · `store` · `engines` · `sweep` · `committed` · `rules` · `paper` ·
`tables` · `experiment` · `rendering` · `measuring` · `networks` · the experiments · `registry`.
"""

from __future__ import annotations

from sfboost_lab.experiments.engines import Group, Session
from sfboost_lab.experiments.run import Run
from sfboost_lab.experiments.store import Measured, Record, Store, read_records, write_records
from sfboost_lab.experiments.sweep import sweep

__all__ = ["Group", "Measured", "Record", "Run", "Session", "Store", "read_records", "sweep", "write_records"]
