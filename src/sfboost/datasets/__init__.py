"""Data of one's own and the bundled digits: named domains of (X, y).

Importing this package imports neither torch nor pandas nor pillow; a loader imports what it needs.
Other data sets are found by name in `sfboost_lab.datasets`.
"""

from sfboost.datasets.colored_digits import colored_digits, table_view
from sfboost.datasets.contract import Dataset, Domain
from sfboost.datasets.images import ImageSequence, image_folder

__all__ = [
    "Dataset",
    "Domain",
    "ImageSequence",
    "colored_digits",
    "image_folder",
    "table_view",
]
