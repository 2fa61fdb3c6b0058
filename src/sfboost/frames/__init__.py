"""Tables: from a file or a frame to numbers, and back to a file.

`cells` (what a column holds) · `column` (one recipe) · `encoder` (all of them) · `reading` · `roles` ·
`preparing` (what the model takes) · `blocks` (tables of any length) · `writing`. What is named here needs no
pyarrow until a column holds text.
"""

from sfboost.frames.cells import EncodingWarning, is_frame, refuse_twins
from sfboost.frames.column import Column
from sfboost.frames.encoder import Encoder

__all__ = ["Column", "Encoder", "EncodingWarning", "is_frame", "refuse_twins"]
