"""Tables of one's own: reading, roles of columns, encoding, writing.

Between files and arrays; knows pyarrow, and nothing of commands or pages.
"""
