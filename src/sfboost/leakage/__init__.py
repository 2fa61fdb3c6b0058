"""What f_S shows of X_U within a class: the leak model, its cells, and stress domains.

Layer 2, beside the engine: all of it is learned from labelled training domains.
"""
