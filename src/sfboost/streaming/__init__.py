"""Tables of any length, on one machine or many: passes over blocks of rows that return sums.

One function of an Arrow record batch (`rows`) is written once; `engines` says who applies it to which block:
this process, or Ray Data. Scheduling, moving data and trying again are the engine's business.
"""

from sfboost.streaming.adapting import Streamed, adapt_stream
from sfboost.streaming.blocks import Block, find_blocks, spill
from sfboost.streaming.engines import ENGINES, Here, RayData, make_engine

__all__ = [
    "ENGINES",
    "Block",
    "Here",
    "RayData",
    "Streamed",
    "adapt_stream",
    "find_blocks",
    "make_engine",
    "spill",
]
