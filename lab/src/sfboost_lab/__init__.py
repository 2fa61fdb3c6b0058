"""The laboratory: the paper's systems, data sets and experiments, beside the library.

`sfboost_lab` imports the library, never the other way. It promises no stable interface: what it measures is
kept in records, not in names.
"""
