"""Data sets: named domains of (X, y), found by name.

Importing this package imports neither torch nor pandas nor pillow; a loader imports what it needs.
"""

from sfboost.datasets.coloring import table_view
from sfboost.datasets.contract import Dataset, Domain
from sfboost.datasets.export import export, read_exported
from sfboost.datasets.folders import image_folder
from sfboost.datasets.images import ImageSequence
from sfboost.datasets.registry import Entry, find, load, names
from sfboost.datasets.sheet import write_sheet
from sfboost.datasets.tables import encode, from_table

__all__ = [
    "Dataset",
    "Domain",
    "Entry",
    "ImageSequence",
    "encode",
    "export",
    "find",
    "from_table",
    "image_folder",
    "load",
    "names",
    "read_exported",
    "table_view",
    "write_sheet",
]
