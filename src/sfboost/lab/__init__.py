"""The laboratory: the paper's systems, data sets and experiments, beside the library.

`sfboost.lab` imports the library, never the other way (the command does, when one of its commands is asked
for). It promises no stable interface: what it measures is kept in records, not in names.
"""
