"""Tables whose domains are new in turn, and what may happen to a new one: rows for studies of the library.

`suite_domains` (rows) → `systems` (what the pooled model listens to) → `kinds` (what happens to the new one).
"""
