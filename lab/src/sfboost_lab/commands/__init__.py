"""The `sfboost-lab` command: one file per command, joined in `sfboost_lab.commands.app`."""

from sfboost.cli import main as run_command


def main() -> None:
    """Run the command, as `sfboost` is run."""
    run_command("sfboost_lab.commands.app:app")
