"""Data sets found by name: the paper's, the tables of our studies, synthetic families, and one's own.

Importing this package imports neither torch nor pandas nor pillow; a loader imports what it needs.
"""

from sfboost_lab.datasets.export import export
from sfboost_lab.datasets.registry import Entry, find, load, names

__all__ = ["Entry", "export", "find", "load", "names"]
