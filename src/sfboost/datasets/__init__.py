"""Data sets: named domains of (X, y), found by name.

Importing this package imports neither torch nor pandas nor pillow; a loader imports what it needs.
"""

from sfboost.datasets.coloring import table_view
from sfboost.datasets.contract import Dataset, Domain
from sfboost.datasets.folders import image_folder
from sfboost.datasets.images import ImageSequence
from sfboost.datasets.registry import Entry, find, load, names

__all__ = [
    "Dataset",
    "Domain",
    "Entry",
    "ImageSequence",
    "find",
    "image_folder",
    "load",
    "names",
    "table_view",
]
