"""Columns of a frame (pandas, polars, pyarrow, …) as numbers, by recipes that are plain data.

Lowest first: `cells` (what a column holds) · `column` (one recipe) · `encoder` (all of them).
"""

from sfboost.encoding.column import Column
from sfboost.encoding.encoder import Encoder
from sfboost.encoding.frames import EncodingWarning, is_frame, refuse_twins

__all__ = ["Column", "Encoder", "EncodingWarning", "is_frame", "refuse_twins"]
