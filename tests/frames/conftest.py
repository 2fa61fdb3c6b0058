"""Without the [app] extra there are no tables."""

from importlib.util import find_spec

collect_ignore_glob = [] if all(find_spec(name) for name in ("pandas", "pyarrow")) else ["test_*.py"]
