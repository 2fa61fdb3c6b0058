"""Doctests of rooms whose extra is not installed are left out, and the header says so."""

from importlib.util import find_spec

#: Room → what its modules import at the top.
NEEDS = {
    "torch": ("torch", "safetensors"),
    "lab/baselines/learned": ("torch", "safetensors"),
    "cli": ("typer", "rich", "pandas", "pyarrow", "jinja2"),
    "report": ("jinja2",),
    "tables": ("pyarrow", "pandas"),
    "streaming": ("pyarrow", "pandas"),
}

_absent = {room: [name for name in names if find_spec(name) is None] for room, names in NEEDS.items()}
collect_ignore_glob = [f"src/sfboost/{room}/*" for room, missing in _absent.items() if missing]
collect_ignore_glob.append("tests/helpers/*")  # tests import them; some need an extra


def pytest_report_header(config):
    """Say what is left out and what would bring it back."""
    return [
        f"sfboost: examples of sfboost.{room} are left out, because {', '.join(missing)} is not installed"
        for room, missing in _absent.items()
        if missing
    ]
